#!/bin/sh
# junit.sh tcasim scenario: an XML parser reads the XML of --junit, whatever programs print.
set -eu
tcasim=$1
scenario=$2
command -v python3 >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed '/^programs:/,$d' "$scenario" >"$work/odd.yaml"
cat >>"$work/odd.yaml" <<'END'
programs:
  - {name: odd, node: node0, command: "printf 'took 1.5 us <&\"]]>\\n\\033[1m\\001\\377\\303\\251\\342\\202\\000\\n'"}
  - {name: ends, node: node1, command: "sh -c 'exit 3'"}
expect:
  - {name: "<a & \"b\"> 'c' é", program: odd, match: 'took ([0-9.]+) us', max: 1}
  - {name: bytes, program: odd, equals: expected.txt}
  - {name: holds, program: odd, match: 'took ([0-9.]+) us', max: 2}
END
printf 'took 1.5 us\n\r\n' >"$work/expected.txt"
cd "$work"
status=0
"$tcasim" exec odd.yaml --junit junit.xml >printed 2>errors || status=$?
[ "$status" = 3 ] || { cat errors; echo "status $status"; exit 1; }
python3 - <<'END'
import xml.etree.ElementTree as tree
root = tree.parse('junit.xml').getroot()
assert root.tag == 'testsuites', root.tag
suite, = root
assert suite.attrib['name'] == 'odd' and suite.attrib['tests'] == '5', suite.attrib
assert suite.attrib['failures'] == '3' and suite.attrib['errors'] == '0', suite.attrib
cases = {case.attrib['name']: case for case in suite}
assert len(cases) == 5, cases.keys()
odd = cases['<a & "b"> \'c\' é'].find('failure')
assert odd.attrib['message'] == '1.5 is not at most 1, in line 1: took 1.5 us <&"]]>', odd.attrib
text = cases['bytes'].find('failure').text
assert '+took 1.5 us <&"]]>\n' in text and '+\\x1b[1m\\x01\\xffé\\xe2\\x82\\x00\n' in text, text
assert '-\\x0d\n' in text, text
assert cases['holds'].find('failure') is None
assert all('hostname' not in case.attrib and 'timestamp' not in case.attrib for case in suite.iter())
END
