# The names that the running service knows, beside those of the commands.
function __metamcp_names
    set -l words (commandline -opc)
    metamcp complete-words -- $words[2..-1] (commandline -ct) 2>/dev/null
end
# The values of an option, as they stand after its `=`.
function __metamcp_values
    __metamcp_names | string replace -r '^--[^=]*=' ''
end
complete -c metamcp -f -a '(__metamcp_names)'
