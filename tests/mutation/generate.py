"""Small wrong changes of any C file, made by rule: one operand of each && and || is dropped, the limit of each comparison
is moved, a statement before a return is dropped. Used by rules.py.

Not every such change is wrong: some cannot be noticed by anybody. Those that were found are in equivalent.txt, each with
its reason.
"""
import collections
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
ROOMS = ("models/", "sim/attach/", "verbs-shim/world/", "verbs-shim/ibverbs/")
LIMITS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
TOKEN = re.compile(r"[A-Za-z_]\w*|\.?\d[\w.]*|->|\+\+|--|<<=|>>=|&&|\|\||[<>=!+*/%&|^-]=|<<|>>|\S")
# What binds less than an operator, and so ends its operands.
ENDS = set(";,?:{}") | {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "return", "case", "else", "do"}
ENDS_OF = {"||": ENDS | {"||"}, "&&": ENDS | {"||", "&&"}, "<": ENDS | {"||", "&&", "|", "^", "&", "==", "!="}}

# A change: what is forgotten or moved from start to end; at is where the operator of a moved limit stands.
Change = collections.namedtuple("Change", "file line sentence kind start end at")
Token = collections.namedtuple("Token", "text start end")


def without(pattern, text):
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.S | re.M)


def uncommented(text):
    """The text with blanks in place of comments: positions stay."""
    pattern = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/'
    blank = lambda found: found.group() if found.group()[0] in "\"'" else re.sub(r"[^\n]", " ", found.group())
    return re.sub(pattern, blank, text, flags=re.S)


def masked(text):
    """The same without literals and lines of the preprocessor."""
    pattern = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*'
    return without(pattern, uncommented(text))


def tokens_of(code):
    return [Token(found.group(), found.start(), found.end()) for found in TOKEN.finditer(code)]


def is_binary(tokens, i):
    """Whether the & there has a left operand."""
    return bool(re.match(r"\w|[)\]]", tokens[i - 1].text)) and tokens[i - 1].text not in ENDS


def operand(tokens, at, step, ends):
    """The position of the last token of an operand, seen from its operator: step is -1 for the left one, 1 for the right."""
    deeper, outer = (")]}", "([{") if step < 0 else ("([{", ")]}")
    depth, i = 0, at + step
    while 0 <= i < len(tokens):
        word = tokens[i].text
        if word in deeper:
            depth += 1
        elif word in outer:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and word in ends and (word != "&" or is_binary(tokens, i)):
            break
        i += step
    return i - step


def bodies(tokens):
    """(first, last) token of each function."""
    depth, begin = 0, None
    for i, token in enumerate(tokens):
        if token.text == "{":
            if depth == 0 and tokens[i - 1].text == ")":
                begin = i
            depth += 1
        elif token.text == "}":
            depth -= 1
            if depth == 0 and begin is not None:
                yield begin, i
                begin = None


def extent(text, tokens, first, last, until):
    """From the first token up to the next one behind the last: literals are no tokens."""
    start = tokens[first - 1].end if first > 0 else 0
    end = tokens[last + 1].start if last + 1 < len(tokens) else len(text)
    start, end = (start, until) if until >= tokens[last].end else (until, end)
    while text[start].isspace():
        start += 1
    while text[end - 1].isspace():
        end -= 1
    return start, end


def is_choice(tokens, i, left, right):
    """a < b ? a : b is the smaller one, with <= as well."""
    words = [token.text for token in tokens]
    a, b = words[left:i], words[i + 1:right + 1]
    rest = words[right + 1:right + 1 + len(a) + len(b) + 2]
    return rest in (["?", *a, ":", *b], ["?", *b, ":", *a])


def of_tokens(text, tokens):
    """(sentence, kind, start, end, at) of operands and limits."""
    for i, (word, start, end) in enumerate(tokens):
        if word not in LIMITS and word not in ("&&", "||"):
            continue
        ends = ENDS_OF["<" if word in LIMITS else word]
        left, right = operand(tokens, i, -1, ends), operand(tokens, i, 1, ends)
        before = extent(text, tokens, left, i - 1, start)
        after = extent(text, tokens, i + 1, right, end)
        if word in LIMITS:
            if not is_choice(tokens, i, left, right):
                whole = " ".join(text[before[0]:after[1]].split())
                yield f"{word} is {LIMITS[word]} in '{whole}'", word, before[0], after[1], start
            continue
        for side in (before, after):
            yield f"'{' '.join(text[side[0]:side[1]].split())}' is forgotten beside {word}", word, *side, None


def statements(code):
    """(sentence, kind, start, end, at) of statements before a return."""
    lines, position = code.split("\n"), 0
    for i, line in enumerate(lines[:-1]):
        indent, statement = len(line) - len(line.lstrip()), line.strip()
        simple = re.fullmatch(r"(?:\(void\))?[A-Za-z_][\w.>\[\]*&() +-]*?(?:\(.*\)|[-+|&]?= ?.+|\+\+|--);", statement)
        declares = re.match(r"\w+ (?:\w+ )*\**\w+(?:\[[^=]*\])? ?[=;]", statement)
        returns = lines[i + 1].startswith(" " * indent + "return") and indent > 0
        begins = i > 0 and lines[i - 1].rstrip().endswith((";", "{", "}"))
        if simple and not declares and returns and begins:
            start = position + indent
            yield f"'{statement}' is forgotten before a return", ";", start, start + len(statement), None
        position += len(line) + 1


def changes(name, text):
    """All changes of a file, in its order, each once."""
    code, plain = masked(text), uncommented(text)
    tokens = tokens_of(code)
    inside = [(tokens[first].start, tokens[last].end) for first, last in bodies(tokens)]
    found = {}
    for sentence, kind, start, end, at in (*of_tokens(plain, tokens), *statements(plain)):
        if any(begin < start and end < finish for begin, finish in inside):
            line = text.count("\n", 0, start) + 1
            found.setdefault((kind, start, end), Change(name, line, sentence, kind, start, end, at))
    return sorted(found.values(), key=lambda change: (change.start, -change.end, change.kind in LIMITS))


def rendered(text, numbered, start, end):
    """The text from start to end with each (number, change) of the list, which is in the order of changes(), as a question
    to MUTANT(number)."""
    parts, position, i = [], start, 0
    while i < len(numbered):
        number, change = numbered[i]
        inner = [one for one in numbered[i + 1:] if one[1].start < change.end]
        parts.append(text[position:change.start])
        parts.append(question(text, number, change, inner))
        position = change.end
        i += 1 + len(inner)
    return "".join(parts) + text[position:end]


def question(text, number, change, inner):
    if change.at is None:
        kept = rendered(text, inner, change.start, change.end)
        form = {"&&": "(MUTANT({}) || ({}))", "||": "(!MUTANT({}) && ({}))", ";": "if (!MUTANT({})) {{ {} }}"}[change.kind]
        return form.format(number, kept)
    operator = change.at + len(change.kind)
    left = rendered(text, [one for one in inner if one[1].end <= change.at], change.start, change.at)
    right = rendered(text, [one for one in inner if one[1].start >= operator], operator, change.end)
    moved = f"{left} {LIMITS[change.kind]} {right}".replace("\n", " ")
    return f"(MUTANT({number}) ? ({moved}) : ({left}{change.kind}{right}))"


def with_questions(text, numbered):
    """The file that holds all of these changes. Lines stay where they are."""
    plain = uncommented(text)
    return rendered(plain, numbered, 0, len(plain))


def equivalents():
    """{(file, sentence)} of the changes that nobody can notice."""
    lines = (HERE / "equivalent.txt").read_text().splitlines()
    return {tuple(line[2:].split(": ", 1)) for line in lines if line.startswith("= ")}


def is_of_a_room(name):
    return name.endswith(".c") and name.startswith(ROOMS)
