# The directives of a unit that runs as an existing user instead of a dynamic one.
# They are those that DynamicUser= implies, except RemoveIPC=, which would remove the
# IPC objects of the user's other processes.
user: {
  User = user;
  NoNewPrivileges = true;
  PrivateTmp = true;
  ProtectSystem = "strict";
  RestrictSUIDSGID = true;
}
