# The largest number of connections to a server. The defaults are those of the
# program (src/config/defaults/pool.rs).
server:
if server.sharing == "shared" then
  1
else if server.max_connections != null then
  server.max_connections
else if server.sharing == "exclusive" then
  4
else
  16
