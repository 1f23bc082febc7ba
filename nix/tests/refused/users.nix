# Cases of assertions and warnings: users and groups.
{
  both,
  server,
  settings,
  ...
}:
{
  "a group of operators that does not exist" = {
    kind = "unknown-group";
    refused = settings { listen.control_group = "operators"; };
    message = "services.metamcp.settings.listen.control_group is operators, but this group does not exist: declare users.groups.operators";
    accepted = both [
      { users.groups.operators = { }; }
      (settings { listen.control_group = "operators"; })
    ];
  };
  "a user with the name of the service's dynamic user" = {
    kind = "user-conflict";
    refused.users.users.metamcp-service.isSystemUser = true;
    message = "services.metamcp.user is null, so that the service would run as the dynamic user metamcp-service, but users.users or users.groups declares this name: rename it there, or set services.metamcp.user.";
    accepted = {
      services.metamcp.user = "metamcp-service";
      users.users.metamcp-service.isSystemUser = true;
    };
  };
  "a user with the name of a server's dynamic user" = {
    kind = "user-conflict";
    refused = both [
      (server "time" { })
      { users.users.mcp-time.isSystemUser = true; }
    ];
    message = "services.metamcp.servers.time would run as the dynamic user mcp-time, but users.users declares a user of this name: rename the server or the user, or set services.metamcp.servers.time.sandbox.user.";
    accepted = both [
      (server "time" { sandbox.user = "mcp-time"; })
      { users.users.mcp-time.isSystemUser = true; }
    ];
  };
  "a user of a server that does not exist" = {
    kind = "unknown-user";
    refused = server "time" { sandbox.user = "alice"; };
    message = "services.metamcp.servers.time.sandbox.user is alice, but this user does not exist: declare users.users.alice";
    accepted = both [
      (server "time" { sandbox.user = "alice"; })
      { users.users.alice.isNormalUser = true; }
    ];
  };
  "a user of the service that does not exist" = {
    kind = "unknown-user";
    refused.services.metamcp.user = "alice";
    message = "services.metamcp.user is alice, but this user does not exist: declare users.users.alice";
    accepted = {
      services.metamcp.user = "alice";
      users.users.alice.isNormalUser = true;
    };
  };
  "a group of a server that does not exist" = {
    kind = "unknown-group";
    refused = server "time" { sandbox.group = "notes"; };
    message = "services.metamcp.servers.time.sandbox.group is notes, but this group does not exist: declare users.groups.notes";
    accepted = both [
      (server "time" { sandbox.group = "notes"; })
      { users.groups.notes = { }; }
    ];
  };
}
