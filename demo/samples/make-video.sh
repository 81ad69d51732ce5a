#!/bin/sh
# Makes walk.mp4 from the photographs beside this script: slow pans and zooms with cross-fades, about 50 s, with the
# title of each photograph and a running time code, so that a seek can be checked by eye. Only photographs under CC BY,
# CC0 or in the public domain are used (LICENSES.md). Needs ffmpeg with libx264, libfreetype and fontconfig.
set -eu
cd "$(dirname "$0")"
out=${1:-walk.mp4}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fps=25
seconds=7        # of each photograph
fade=1           # of each cross-fade
frames=$((fps * seconds))

# photograph | title | zoom by frame `on` | where the window's centre is, as fractions of the photograph: from, to
scenes='seeding|Seeding|1.05+0.20*P|0.30|0.42|0.45|0.48
picos-de-europa|Picos de Europa|1.30-0.22*P|0.35|0.55|0.55|0.45
stream|Life|1.08+0.25*P|0.50|0.50|0.35|0.62
fig|Picture 0B|1.35-0.25*P|0.58|0.50|0.50|0.50
aitzgorri|Aitzgorri|1.22|0.30|0.40|0.70|0.40
brushes|Picture 1A|1.30|0.50|0.70|0.50|0.30
sunset|Sunset|1.05+0.25*P|0.50|0.50|0.50|0.42
deep-field|Hubble eXtreme Deep Field|1.02+0.60*P|0.50|0.50|0.62|0.40'

count=0
echo "$scenes" > "$work/scenes"
while IFS='|' read -r name title zoom x0 y0 x1 y1; do
  p="(on/$frames)"
  z=$(echo "$zoom" | sed "s#P#$p#g")
  # zoompan moves by whole input pixels, so the photograph is enlarged first or the pan would shake.
  ffmpeg -nostdin -v error -y -i "photos/$name.jpg" -vf "
    scale=5120:2880:force_original_aspect_ratio=increase:flags=lanczos,crop=5120:2880,
    zoompan=z='$z':d=$frames:s=1280x720:fps=$fps:
      x='(iw-iw/zoom)*($x0+($x1-$x0)*$p)':y='(ih-ih/zoom)*($y0+($y1-$y0)*$p)',
    drawtext=font='DejaVu Sans':text='$title':x=40:y=h-66:fontsize=26:fontcolor=white:shadowcolor=black@0.7:shadowx=1:shadowy=1,
    format=yuv420p" -c:v libx264 -preset ultrafast -qp 8 "$work/$count.mp4"
  count=$((count + 1))
done < "$work/scenes"

inputs=''
graph=''
last='[0:v]'
i=0
while [ "$i" -lt "$count" ]; do
  inputs="$inputs -i $work/$i.mp4"
  if [ "$i" -gt 0 ]; then
    graph="$graph$last[$i:v]xfade=transition=fade:duration=$fade:offset=$((i * (seconds - fade)))[v$i];"
    last="[v$i]"
  fi
  i=$((i + 1))
done
clock="drawtext=font='DejaVu Sans Mono':text='%{pts\\:hms}':x=w-tw-40:y=h-66:fontsize=26:fontcolor=white:box=1:boxcolor=black@0.45:boxborderw=8"

# Two passes hit the size (about 6.5 MB); a key frame every 2 s makes seeks exact enough to show.
for pass in 1 2; do
  # shellcheck disable=SC2086
  ffmpeg -nostdin -v error -y $inputs -filter_complex "$graph$last$clock,format=yuv420p[out]" -map '[out]' \
    -c:v libx264 -preset medium -profile:v high -b:v 1040k -maxrate 2000k -bufsize 4000k -g $((2 * fps)) \
    -pass "$pass" -passlogfile "$work/pass" -map_metadata -1 -fflags +bitexact -movflags +faststart \
    -metadata title='A walk through eight photographs' \
    -metadata copyright='CC BY 4.0, authors in LICENSES.md' "$out"
done
