# Completion of tcasim for bash: commands and options as the program knows them, then files.
_tcasim() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(tcasim help --words) help --help --version" -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(tcasim help --words "$command" 2>/dev/null)" -- "$word")
    elif [ "$command" = help ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(tcasim help --words)" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -o filenames -F _tcasim tcasim
