# How many connections a server may have, with what the program does by itself
# (src/config/defaults/pool.rs).
server:
if server.sharing == "shared" then
  1
else if server.max_connections != null then
  server.max_connections
else if server.sharing == "exclusive" then
  4
else
  16
