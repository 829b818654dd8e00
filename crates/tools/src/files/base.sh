# What the scripts of the file tools share. They run where commands run; paths are absolute.
#
# Each line of an answer is a word and what it says; texts are in base64, since a terminal cleans what passes through it.
# What comes before `hermes-files` is not ours, and without `done` at the end a part is missing.

LC_ALL=C
export LC_ALL
echo hermes-files

fail() {
    printf 'error %s' "$*" | tr '\n' ' '
    echo
    exit
}

for program in base64 stat; do
    command -v "$program" >/dev/null || fail "the file tools need the program $program over there"
done

# Says the word $1 and what comes on standard input.
say() {
    printf '%s ' "$1"
    base64 | tr -d '\n'
    echo
}

if stat -c %f / >/dev/null 2>&1; then
    describe() { stat -c '%f %s %u %g %d %i %Y %Z|%y|%z' "$1"; }
else
    describe() { stat -f '%Xp %z %u %g %d %i %m %c|%Fm|%Fc' "$1"; }
fi

# Says what is at $1, which has no links on the way.
look() {
    if seen=$(describe "$1" 2>&1); then
        echo "seen $seen"
        return
    fi
    case $seen in
    *'No such file or directory'*) echo missing ;;
    *) fail "$seen" ;;
    esac
}

is_regular() {
    [ -f "$1" ] && [ ! -L "$1" ]
}

break='
'

# Sets `target` to where $1 leads: links are followed, also dangling ones, and what is missing is appended.
follow() {
    target=$1 links=0
    while [ -L "$target" ]; do
        links=$((links + 1))
        [ "$links" -le 40 ] || fail 'Too many levels of symbolic links'
        # The end of the text is marked: a name may end with line breaks.
        link=$(readlink "$target" && echo .)
        link=${link%"$break".}
        case $link in
        /*) target=$link ;;
        *) target=${target%/*}/$link ;;
        esac
    done
    folder=$target rest=''
    until [ -d "${folder:-/}" ]; do
        rest=/${folder##*/}$rest
        folder=${folder%/*}
    done
    folder=$(cd -P -- "${folder:-/}" 2>/dev/null && pwd -P && echo .) || fail 'Permission denied'
    folder=${folder%"$break".}
    target=${folder%/}$rest
    target=${target:-/}
}
