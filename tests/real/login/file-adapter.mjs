// The state of the authorization server in one file, so that it outlives the process.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

/** The kinds of records that end with their grant. */
const OF_GRANT = new Set(['AccessToken', 'AuthorizationCode', 'RefreshToken']);

export class State {
  constructor(file) {
    this.file = file;
    this.records = new Map(existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []);
  }

  get(key) {
    const record = this.records.get(key);
    return record?.ends !== undefined && record.ends < Date.now() ? undefined : record?.payload;
  }

  set(key, payload, ends) {
    this.records.set(key, { payload, ends });
    this.save();
  }

  /** Removes all records of which `isUnwanted` is true. */
  remove(isUnwanted) {
    for (const [key, { payload }] of this.records) if (isUnwanted(key, payload)) this.records.delete(key);
    this.save();
  }

  save() {
    writeFileSync(`${this.file}.new`, JSON.stringify([...this.records]));
    renameSync(`${this.file}.new`, this.file);
  }
}

/** Returns the adapter for oidc-provider. */
export const adapterOf = state => model => {
  const key = id => `${model}:${id}`;
  const first = async isWanted => {
    for (const [name] of state.records) {
      const payload = name.startsWith(`${model}:`) ? state.get(name) : undefined;
      if (payload && isWanted(payload)) return payload;
    }
  };
  return {
    upsert: async (id, payload, seconds) =>
      state.set(key(id), payload, seconds === undefined ? undefined : Date.now() + seconds * 1000),
    find: async id => state.get(key(id)),
    findByUid: uid => first(payload => payload.uid === uid),
    findByUserCode: code => first(payload => payload.userCode === code),
    consume: async id => {
      state.get(key(id)).consumed = Math.floor(Date.now() / 1000);
      state.save();
    },
    destroy: async id => state.remove(name => name === key(id)),
    revokeByGrantId: async grant =>
      state.remove((name, payload) => OF_GRANT.has(name.split(':')[0]) && payload.grantId === grant),
  };
};
