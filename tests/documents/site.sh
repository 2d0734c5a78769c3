#!/bin/sh
# site.sh <tree> <folder> <tcasim>: mkdocs builds the site into the folder without a warning. It refers to nothing outside.
set -eu
command -v mkdocs >/dev/null && mkdocs build --help | grep -q strict || {
    echo 'skipped: no mkdocs'
    exit 77
}
cd "$1"
TCASIM=$3 mkdocs build --strict --quiet --site-dir "$2"
for page in index start tutorials/first-what-if reference/keys reference/commands CONTRIBUTING decisions/index; do
    [ -s "$2/$page.html" ] || {
        echo "there is no $page.html"
        exit 1
    }
done
# Links may lead outside; scripts, pictures and styles may not come from there.
! grep -rlE 'src="(https?:)?//|<link[^>]+rel="(stylesheet|preload|preconnect)"[^>]+href="(https?:)?//|<link[^>]+href="(https?:)?//[^>]+rel="(stylesheet|preload|preconnect)"' --include='*.html' "$2"
