# The names that the running service knows come first, then those of the commands.
_metamcp_names() {
    local word names=()
    while IFS= read -r word; do
        names+=("$word")
    done < <(metamcp complete-words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if ((${#names[@]})); then
        COMPREPLY=("${names[@]}")
        # A colon begins a new word, so the part before it must not be repeated.
        declare -F __ltrim_colon_completions >/dev/null && __ltrim_colon_completions "$2"
        return 0
    fi
    _metamcp "$@"
}
complete -F _metamcp_names -o nosort -o bashdefault -o default metamcp 2>/dev/null ||
    complete -F _metamcp_names -o bashdefault -o default metamcp
