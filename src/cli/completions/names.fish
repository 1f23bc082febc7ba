# The names that the running service knows, beside those of the commands.
function __metamcp_names
    set -l words (commandline -opc)
    metamcp complete-words -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c metamcp -f -a '(__metamcp_names)'
