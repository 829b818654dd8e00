# Makes the shell ready for one command of a session: takes up what the command before it left, and leaves it for the next.
# Whoever reads this then runs "$__hermes_line", and `__hermes_end`.
#
# $1 the file that holds what is left; what this command leaves goes to "$1.$3"
# $2 `new`, or `known` when there should be something in the file
# $3 the command's mark: in the environment of everything it starts
# $4 where a new shell begins, `~` for the home; $5 a folder for this command only, or nothing
# $6 files a new shell reads, one per line
# $7 the command, or nothing; then $8 says how many bytes of standard input it has
#
# Also runs under a plain POSIX shell, which can only leave its folder and its exported variables.

__hermes_keep() {
    [ -z "$__hermes_kept" ] || return
    __hermes_kept=1
    # Not to be written down themselves.
    unset -f __hermes_start __hermes_keep __hermes_end
    # Given to each command anew, or not any more. However words are split now, these are words.
    [ -z "${__hermes_granted-}" ] || eval "unset $__hermes_granted __hermes_granted"
    [ -z "$__hermes_back" ] || PWD=$__hermes_back
    if [ -n "${BASH_VERSION-}" ]; then
        unset BASH_EXECUTION_STRING
        builtin declare -p
        builtin declare -f
        builtin alias -p
        # Eighty lines that the next command would read for nothing, unless somebody changed an option.
        [ "$BASHOPTS:$SHELLOPTS" = "$__hermes_options" ] || {
            builtin shopt -p
            builtin set +o
        }
        builtin umask -p
    else
        export -p
    fi >"$__hermes_left" && echo '# complete' >>"$__hermes_left"
    # Whoever leaves by `exit` comes here twice.
    __hermes_keep() { :; }
}

__hermes_end() {
    __hermes_status=$?
    __hermes_keep
    exit "$__hermes_status"
}

__hermes_start() {
    IFS='
'
    for __hermes_file in $1; do
        case $__hermes_file in '~/'*) __hermes_file=$HOME/${__hermes_file#'~/'} ;; esac
        unset IFS
        [ -r "$__hermes_file" ] && . "$__hermes_file"
    done
    [ -z "${BASH_VERSION-}" ] || for __hermes_name in $(compgen -e); do
        case $__hermes_name in @SECRET_NAMES@) unset "$__hermes_name" ;; esac
    done
}

if [ -n "${BASH_VERSION-}" ]; then
    shopt -s expand_aliases
    export -n __hermes_granted
    __hermes_options=$BASHOPTS:$SHELLOPTS
fi
[ "$4" != '~' ] || set -- "$1" "$2" "$3" "${HOME:-/}" "$5" "$6" "$7" "$8"
__hermes_kept='' __hermes_back='' __hermes_left=$1.$3
if [ ! -r "$1" ]; then
    [ "$2" = new ] || echo '[the shell of this session was lost: folder, variables and functions are those of a new one]'
    # A start file may say `exit`, or print; neither is the command's concern.
    [ -z "$6" ] || (
        cd -- "$4" && trap __hermes_keep EXIT && __hermes_left=$1 && __hermes_start "$6"
    ) </dev/null >/dev/null 2>&1
fi
if [ -r "$1" ]; then
    PWD=$4
    . "$1" 2>/dev/null
    __hermes_flags=$-
    set +eux
    __hermes_back=${OLDPWD-}
    cd -- "$PWD" 2>/dev/null || { echo "[$PWD is gone; this is $4]"; cd -- "$4" 2>/dev/null; }
    [ -z "$__hermes_back" ] || OLDPWD=$__hermes_back
else
    __hermes_flags=''
    cd -- "$4" 2>/dev/null
fi || { echo "$3 no folder $4"; exit 126; }
__hermes_kept='' __hermes_back='' __hermes_left=$1.$3
if [ -n "$5" ]; then
    __hermes_back=$PWD
    cd -- "$5" 2>/dev/null || { echo "$3 no folder $5"; exit 126; }
fi
__hermes_line=$7
if [ -z "$__hermes_line" ]; then
    if [ -n "${BASH_VERSION-}" ]; then
        LC_ALL=C read -r -N "$8" __hermes_line
    else
        __hermes_line=$(head -c "$8")
    fi
fi
HERMES_COMMAND=$3
export HERMES_COMMAND
[ -z "${BASH_VERSION-}" ] || RANDOM=$$
set --
trap '{ __hermes_keep; } 2>/dev/null' EXIT
case $__hermes_flags in *e*) set -e ;; esac
case $__hermes_flags in *u*) set -u ;; esac
case $__hermes_flags in *x*) set -x ;; esac
