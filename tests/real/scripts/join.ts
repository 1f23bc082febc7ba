const [log, people] = await Promise.all([
  servers.git.git_log({ repo_path: "DIRECTORY/repository", max_count: 300 }),
  servers.filesystem.read_text_file({ path: "DIRECTORY/people.json" }),
]);
const teams = new Map(JSON.parse(people.content).map(({ name, team }) => [name, team]));
const counts: Record<string, number> = {};
for (const [, author] of log.matchAll(/^Author: (.*)$/gm)) {
  const team = teams.get(author);
  counts[team] = (counts[team] ?? 0) + 1;
}
return counts;
