# A user that is there, for a unit that otherwise has one of systemd's
# (DynamicUser=): what that would bring, but for RemoveIPC=, which would take away
# what other processes of the user have.
user: {
  User = user;
  NoNewPrivileges = true;
  PrivateTmp = true;
  ProtectSystem = "strict";
  RestrictSUIDSGID = true;
}
