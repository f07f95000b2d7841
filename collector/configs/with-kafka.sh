#!/usr/bin/env bash
# Runs a command beside a Kafka broker of its own, named by KAFKA_BROKER: with-kafka.sh COMMAND…
# Java 17 and Maven are needed; the broker's jars (46 MB) are fetched once, into .cache/kafka.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
for tool in java mvn; do
  command -v "$tool" >/dev/null || { echo "the scale-out tests need $tool (on Debian: apt-get install maven)"; exit 1; }
done
jars="$root/.cache/kafka"
if [ ! -e "$jars/.complete" ]; then
  mvn -q -B -f "$root/collector/configs/testdata/kafka.xml" dependency:copy-dependencies -DoutputDirectory="$jars"
  touch "$jars/.complete"
fi
folder="$(mktemp -d)"
broker=""
trap 'if [ -n "$broker" ]; then kill "$broker" 2>/dev/null || true; wait "$broker" 2>/dev/null || true; fi; rm -rf "$folder"' EXIT
read -r client controller < <(PYTHONPATH="$root" python3 -c '
from tests import ports
print(*ports.free(2))')
sed -e "s#CLIENT#$client#g" -e "s#CONTROLLER_PORT#$controller#g" -e "s#FOLDER#$folder#g" \
  "$root/collector/configs/testdata/kafka.properties" > "$folder/server.properties"
run() { java -Xmx512m -cp "$jars/*" "$@" >> "$folder/kafka.log" 2>&1; }
run kafka.tools.StorageTool format -t "$(head -c 16 /dev/urandom | base64 | tr '+/' 'ab' | cut -c1-22)" -c "$folder/server.properties"
java -Xmx512m -cp "$jars/*" kafka.Kafka "$folder/server.properties" >> "$folder/kafka.log" 2>&1 &
broker=$!
for _ in $(seq 240); do
  grep -q "Kafka Server started" "$folder/kafka.log" && break
  kill -0 "$broker" 2>/dev/null || { tail -20 "$folder/kafka.log"; exit 1; }
  sleep 0.5
done
KAFKA_BROKER="127.0.0.1:$client" "$@"
