"""Small wrong changes of any C file, made by rule: one operand of each && and || is dropped, the limit of each comparison
is moved, a statement before a return is dropped. Used by mutate.py (--generated).

Not every such change is wrong: some cannot be noticed by anybody. Those that were found are in equivalent.txt, each with
its reason.
"""
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
ROOMS = ("models/", "sim/attach/", "verbs-shim/world/", "verbs-shim/ibverbs/")
LIMITS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OPENING, CLOSING = "([{", ")]}"


def masked(text):
    """The text with comments, literals and lines of the preprocessor as blanks: positions stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*'
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.S | re.M)


def bound_left(code, at, operator):
    """Where the left operand of the operator at that position begins."""
    depth, i = 0, at - 1
    while i >= 0:
        if code[i] in CLOSING:
            depth += 1
        elif code[i] in OPENING:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            two = code[i - 1:i + 1]
            assigns = code[i] == "=" and code[i + 1] != "=" and code[i - 1] not in "=!<>"
            if code[i] in ";,?:" or assigns or two == "||" or (two == "&&" and operator == "&&"):
                break
            if code[i] == "n" and re.search(r"\breturn$", code[:i + 1]):
                break
        i -= 1
    return i + 1


def bound_right(code, at, operator):
    """Where the right operand ends."""
    depth, i = 0, at + 2
    while i < len(code):
        if code[i] in OPENING:
            depth += 1
        elif code[i] in CLOSING:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (code[i] in ";,?:" or code[i:i + 2] == "||" or (code[i:i + 2] == "&&" and operator == "&&")):
            break
        i += 1
    return i


def operands(text, code):
    for found in re.finditer(r"&&|\|\|", code):
        at, operator = found.start(), found.group()
        left, right = bound_left(code, at, operator), bound_right(code, at, operator)
        while left < at and code[left] in " \n":
            left += 1
        begin = at + 2
        while begin < right and code[begin] in " \n":
            begin += 1
        while right > begin and code[right - 1] in " \n":
            right -= 1
        yield f"'{' '.join(text[left:at].split())}' is forgotten before {operator}", text[:left] + text[begin:]
        end = at
        while end > left and code[end - 1] in " \n":
            end -= 1
        yield f"'{' '.join(text[begin:right].split())}' is forgotten after {operator}", text[:end] + text[right:]


def is_choice(code, at, end):
    """a < b ? a : b is the smaller one, with <= as well."""
    after = re.match(r" ([\w.>\[\]-]+) \? ([\w.>\[\]-]+) : ([\w.>\[\]-]+)", code[end:])
    before = re.search(r"([\w.>\[\]-]+) $", code[:at])
    return bool(after and before) and {before.group(1), after.group(1)} == {after.group(2), after.group(3)}


def limits(text, code):
    for found in re.finditer(r"(?<= )(<=|>=|<|>)(?= )", code):
        old = found.group()
        if is_choice(code, found.start(), found.end()):
            continue
        line = text[text.rfind("\n", 0, found.start()) + 1:text.find("\n", found.end())]
        yield f"{old} is {LIMITS[old]} in '{line.strip()}'", text[:found.start()] + LIMITS[old] + text[found.end():]


def statements(text, code):
    lines, plain = text.split("\n"), code.split("\n")
    for i in range(len(lines) - 1):
        indent = len(plain[i]) - len(plain[i].lstrip())
        statement = plain[i].strip()
        simple = re.fullmatch(r"(?:\(void\))?[A-Za-z_][\w.>\[\]*&() +-]*?(?:\(.*\)|[-+|&]?= ?.+|\+\+|--);", statement)
        declares = re.match(r"(?:const |static |struct |enum |unsigned |bool |int |char |void |size_t |\w+_t )", statement)
        returns = plain[i + 1].startswith(" " * indent + "return") and indent > 0
        begins = i > 0 and plain[i - 1].rstrip().endswith((";", "{", "}"))
        if simple and not declares and returns and begins:
            yield f"'{lines[i].strip()}' is forgotten before a return", "\n".join(lines[:i] + lines[i + 1:])


def changes(text):
    """(sentence, changed text) of each change, in the order of the file."""
    code = masked(text)
    return [change for rule in (operands, limits, statements) for change in rule(text, code)]


def equivalents():
    """{(file, sentence)} of the changes that nobody can notice."""
    path = HERE / "equivalent.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    blocks = [line[2:].split(": ", 1) for line in lines if line.startswith("= ")]
    return {(name, sentence) for name, sentence in blocks}


def of_files(source, names):
    """(file, sentence, changed text) of all changes of these files that may be noticed."""
    known = equivalents()
    for name in names:
        text = (source / name).read_text()
        for sentence, changed in changes(text):
            if (name, sentence) not in known:
                yield name, sentence, changed


def is_of_a_room(name):
    return name.endswith(".c") and name.startswith(ROOMS)
