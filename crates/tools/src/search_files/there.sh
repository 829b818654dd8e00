# Searches files for `search_files`.
#
# $1 the folder or file; $2 `names`, `lines` or `counts`; $3 `hidden` when hidden files are wanted too; $4 lines of context
# $5 most bytes of what is found; $6 the pattern as `rg` reads it; $7 as `grep -E` reads it, or nothing when it cannot
# $8 `-i`, or nothing; $9 `given` when the files to search come on standard input
#
# What is found is for each file a line with the byte 036 and its name, and then its lines as `grep -n` prints them, or
# their number. For `names` each line is a time and a name.

root=$1 what=$2 hidden=$3 context=$4 bytes_max=$5 pattern=$6 extended=$7 case=$8 source=$9
follow "$root"
printf %s "$target" | say target
look "$target"
name=''
if is_regular "$target"; then
    name=${target##*/} target=${target%/*}
elif [ ! -d "$target" ]; then
    echo done
    exit
fi
cd -- "${target:-/}" 2>/dev/null || fail 'Permission denied'

has() { command -v "$1" >/dev/null 2>&1; }

if has rg; then
    program=rg
elif [ -n "$extended" ] || [ "$what" = names ]; then
    program=grep
else
    fail 'without the program rg over there this pattern cannot be searched for; make it simpler'
fi

# Lists the files below this folder, without hidden ones and those that git ignores, as far as that can be known. Names
# begin with `./`, so that no program takes one for an option.
list() {
    if [ "$program" = rg ]; then
        set -- --no-config --files --glob '!.git'
        [ "$hidden" != hidden ] || set -- "$@" --hidden
        rg "$@" ./ 2>/dev/null
    elif has git && git rev-parse --is-inside-work-tree >/dev/null 2>&1 && ! git check-ignore -q . 2>/dev/null; then
        git -c core.quotePath=false ls-files -co --exclude-standard | visible | while IFS= read -r file; do
            ! is_regular "$file" || printf './%s\n' "$file"
        done
    elif [ "$hidden" = hidden ]; then
        find . -name .git -prune -o -type f -print 2>/dev/null
    else
        find . -name '.?*' -prune -o -type f -print 2>/dev/null
    fi
}

visible() {
    if [ "$hidden" = hidden ]; then cat; else grep -v -e '^\.' -e '/\.'; fi
}

candidates() {
    if [ -n "$name" ]; then
        printf './%s\n' "$name"
    elif [ "$source" = given ]; then
        cat
    else
        list
    fi
}

# Gives the lines of standard input to a command as arguments.
each() {
    tr '\n' '\000' | xargs -0 "$@" 2>/dev/null
}

with_times() {
    if stat -c %Y / >/dev/null 2>&1; then each stat -c '%Y %n'; else each stat -f '%m %N'; fi
}

# Lists which of the files on standard input have a line that matches.
matching() {
    if [ -n "$name" ]; then
        cat
    elif [ "$program" = rg ]; then
        # With `--crlf` it ends its own lines so, too.
        each rg --no-config --crlf --no-messages -l -e "$pattern" -- | tr -d '\r'
    else
        each grep -l -E $case -e "$extended" --
    fi | sort
}

search() {
    if [ "$program" = rg ]; then
        set -- --no-config --crlf --no-heading --no-filename --color never -e "$pattern" -- "$1"
        if [ "$what" = counts ]; then rg -c "$@"; else rg -n -C "$context" "$@"; fi
    else
        set -- -E $case -e "$extended" -- "$1"
        if [ "$what" = counts ]; then
            grep -c "$@"
        elif [ "$context" -gt 0 ]; then
            grep -n -C "$context" "$@"
        else
            grep -n "$@"
        fi
    fi 2>/dev/null
}

# A file with a NUL in it is no text.
is_text() {
    tr -d '\000' <"$1" 2>/dev/null | cmp -s - "$1"
}

if [ "$what" = names ]; then
    candidates | with_times | sed 's,^\([0-9]*\) \./,\1 ,' | head -c "$bytes_max" | say found
else
    [ -z "$name" ] || is_text "./$name" || echo binary
    candidates | matching | while IFS= read -r file; do
        if is_text "$file"; then
            printf '\036%s\n' "${file#./}"
            search "$file" </dev/null
        fi
    done | head -c "$bytes_max" | say found
fi
echo done
