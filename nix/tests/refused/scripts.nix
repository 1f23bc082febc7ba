# Cases of assertions and warnings: the scripts of clients.
{ settings, ... }:
{
  "scripts without isolation" = {
    kind = "unisolated-scripts";
    refused = settings { execute.profile = "dev"; };
    message = "services.metamcp.settings.execute.profile is \"dev\", so that a script of a client runs without isolation and may do all that the service may do: set it to \"standard\"";
    accepted = settings {
      execute = {
        enabled = false;
        profile = "dev";
      };
    };
  };
}
