// Attempt: to call tools, print and report progress while the returned value is read, after the end.
// Contained: the value is that of `toJSON`, and the late calls are cancelled.
// expect: value "late"
return {
  toJSON() {
    servers.fake.echo({ value: 'too late' });
    console.log('too late');
    progress(1);
    return 'late';
  },
};
