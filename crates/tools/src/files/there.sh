# Does one thing with files: $1 says what.

# Sets `temp` to a new file beside $1 that holds the standard input, $2 bytes, with the mode $3 and the owner $4, or those
# of a new file. Says which folders were made for it.
stage() {
    folder=${1%/*} outer_first='' inner_first='' temp=''
    folder=${folder:-/}
    missing=$folder
    while [ ! -d "${missing:-/}" ]; do
        outer_first="$missing
$outer_first"
        inner_first="$inner_first
$missing"
        missing=${missing%/*}
    done
    said=$(mkdir -p -- "$folder" 2>&1) || give_up "$said"
    number=0
    while temp=${folder%/}/.hermes-write-$$-$number; do
        # Nobody else reads what may be a secret before it has its mode.
        said=$( (umask 077; set -C; : >"$temp") 2>&1) && break
        [ -e "$temp" ] && [ "$number" -lt 1000 ] || { temp=''; give_up "$said"; }
        number=$((number + 1))
    done
    trap 'rm -f "$temp"; exit 1' HUP INT TERM
    said=$(cat 2>&1 >"$temp") || give_up "$said"
    [ "$(($(wc -c <"$temp")))" -eq "$2" ] || give_up 'only a part of the content came'
    if [ -n "$3" ]; then
        # Only the superuser may give files away.
        chown "$4" "$temp" 2>/dev/null
        said=$(chmod "$3" "$temp" 2>&1) || give_up "$said"
    else
        # Whatever the mask allows.
        said=$(chmod =rw "$temp" 2>&1) || give_up "$said"
    fi
    each_folder "$outer_first" | while IFS= read -r made; do printf %s "$made" | say made; done
}

each_folder() {
    printf '%s\n' "$1" | sed '/^$/d'
}

give_up() {
    [ -z "$temp" ] || rm -f "$temp"
    each_folder "$inner_first" | while IFS= read -r made; do rmdir "$made" 2>/dev/null; done
    fail "$1"
}

# Puts the file $1 into the place of $2.
put() {
    temp=$1
    [ ! -d "$2" ] || give_up 'Is a directory'
    said=$(mv -f -- "$1" "$2" 2>&1) || give_up "$said"
}

what=$1
shift
case $what in
home)
    printf %s "${HOME:-/}" | say home
    printf %s "$(cd -P -- "${HOME:-/}" 2>/dev/null && pwd -P)" | say real_home
    pwd -P | tr -d '\n' | say folder
    ;;
follow)
    [ ! -L "$1" ] || echo link
    follow "$1"
    printf %s "$target" | say target
    ;;
look)
    look "$1"
    [ -w "$1" ] || echo unwritable
    bytes=${seen#* }
    if is_regular "$1" && [ "$2" -gt 0 ] && [ "${bytes%% *}" -le "$2" ]; then
        if [ -r "$1" ]; then head -c "$(($2 + 1))" <"$1" | say content; else echo 'unread Permission denied'; fi
    fi
    ;;
open)
    follow "$1"
    printf %s "$target" | say target
    look "$target"
    if is_regular "$target"; then
        [ -r "$target" ] || fail 'Permission denied'
        head -c "$5" <"$target" | say sample
        tail -n "+$2" <"$target" | head -n "$3" | head -c "$4" | say page
        echo "breaks $(($(wc -l <"$target")))"
        [ -z "$(tail -c 1 <"$target" | tr '\000' x)" ] || echo unended
    fi
    ;;
stage)
    stage "$@"
    printf %s "$temp" | say temp
    ;;
write)
    stage "$@"
    put "$temp" "$1"
    ;;
put)
    inner_first=''
    put "$@"
    ;;
discard)
    rm -f -- "$1"
    ;;
remove)
    said=$(rm -- "$1" 2>&1) || fail "$said"
    ;;
rmdir)
    for folder in "$@"; do rmdir -- "$folder" 2>/dev/null; done
    ;;
nearest)
    folder=$1
    until [ -d "${folder:-/}" ]; do folder=${folder%/*}; done
    printf %s "${folder:-/}" | say folder
    ;;
names)
    [ -r "$1" ] || fail 'Permission denied'
    ls -A -- "$1" 2>/dev/null | head -n "$2" | say names
    ;;
esac
echo done
