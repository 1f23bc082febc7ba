# The names that the running service knows come first, then those of the commands.
_metamcp() {
    local -a names
    names=("${(@f)$(metamcp complete-words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    names=(${names:#})
    if (( ${#names} )); then
        compadd -a names
        return 0
    fi
    _metamcp_static "$@"
}
