// Attempt: to have a conversion to text call a tool.
// Contained: the text is the name, and no tool is called.
// expect: value ["servers","servers.fake","undefined"]
return [`${servers}`, `${servers.fake}`, `${servers[Symbol.iterator]}`];
