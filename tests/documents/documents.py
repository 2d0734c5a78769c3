#!/usr/bin/env python3
"""documents.py PAGE.md SCRATCH PROGRAM: does what a page of the documents shows, and compares.
documents.py --check TREE: every command of every page is written so that it is done.

The blocks of a page are done in their order, in one folder that looks like a clone of the repository:
  ```console                  each line `$ COMMAND` is run (with a `\\` at its end the command goes on in the next line).
                              The lines after it are what it prints, standard error included. A line `...` stands for
                              any lines, `...` in a line for any text.
  ```yaml title="start.yaml"  the file is created; any language, any name.
A comment on the line before a block:
  <!-- not run: REASON -->    the block is not run
  <!-- instead: COMMAND -->   this command is run and not those of the block; it may print anything
  <!-- status: 1 -->          the last command of the block ends with this status and not with 0
  <!-- append -->             the block is added at the end of the file
  <!-- picture: FILE -->      before a picture: the commands have made it as FILE, and it is the same
  <!-- needs: mpicc gcc -->   anywhere: programs without which the page is skipped (status 77)
"""
import difflib
import os
import re
import shutil
import subprocess
import sys

FENCE = re.compile(r'^( *)(```+)\s*(\w*)\s*(?:title="([^"]*)")?\s*$')
COMMENT = re.compile(r'^ *<!-- (not run|instead|status|append|picture|needs)(?:: (.*?))? *-->$')
PICTURE = re.compile(r'^!\[[^]]*\]\(([^)]*)\)')
TIME_LIMIT_S = 120
LINKED = ('.git', '.ci', 'build', 'results', 'tcasim', 'configs')  # everything but these is a link


class Block:
    """A fenced block or a picture of a page, with its comments."""

    def __init__(self, line, language, title, notes):
        self.line, self.language, self.title, self.notes = line, language, title, notes
        self.lines = []


def blocks_read(path):
    """The blocks of a page, and the mistakes in how they are written."""
    blocks, mistakes, notes = [], [], {}
    block = fence = None
    before = ''
    with open(path, encoding='utf-8') as page:
        for number, line in enumerate(page.read().split('\n'), 1):
            if block is not None:
                if line.strip() == fence:
                    blocks.append(block)
                    block = None
                else:
                    block.lines.append(line[len(indent):] if line.startswith(indent) else line)
                before = ''
                continue
            opening, comment, picture = FENCE.match(line), COMMENT.match(line), PICTURE.match(line)
            if opening:
                indent, fence = opening.group(1), opening.group(2)
                block = Block(number, opening.group(3), opening.group(4), notes)
                notes = {}
            elif comment:
                notes[comment.group(1)] = comment.group(2)
                if comment.group(1) != 'append' and not comment.group(2):
                    mistakes.append((number, f'the comment `{comment.group(1)}` has no text'))
            elif picture:
                blocks.append(Block(number, 'picture', picture.group(1), notes))
                notes = {}
            elif line.strip():
                if re.match(r' {4,}(\./tcasim|\$) ', line) and not before:
                    mistakes.append((number, 'a command in an indented block: use ```console'))
                notes = {name: text for name, text in notes.items() if name == 'needs'}
            before = line.strip()
    if block is not None:
        mistakes.append((block.line, 'the block has no end'))
    for block in blocks:
        mistakes += block_mistakes(block)
    return blocks, mistakes


def block_mistakes(block):
    if block.language in ('picture', 'text'):
        return
    for offset, line in enumerate(block.lines, 1):
        if block.language != 'console' and re.match(r'(\./tcasim|\$|tcasim (run|exec|check)) ', line):
            yield block.line + offset, 'a command outside of ```console'
    if block.language == 'console' and not (block.lines and block.lines[0].startswith('$ ')):
        yield block.line, 'the first line of a ```console block is no command'
    if not block.language:
        yield block.line, 'a block without a language; `text` is one'


def commands_of(block):
    """(line, command, what is shown below it) of a console block."""
    commands = []
    goes_on = False
    for offset, line in enumerate(block.lines, 1):
        if goes_on:
            commands[-1][1] += '\n' + line
        elif line.startswith('$ '):
            commands.append([block.line + offset, line[2:], []])
        else:
            commands[-1][2].append(line)
            continue
        goes_on = line.endswith('\\')
    for command in commands:
        while command[2] and not command[2][-1].strip():
            command[2].pop()
    return commands


def shown_matches(shown, printed):
    pattern = ''
    for line in shown:
        if line.strip() == '...':
            pattern += r'(?:[^\n]*\n)*?'
        else:
            pattern += '[^\n]*?'.join(re.escape(part) for part in line.rstrip().split('...')) + '\n'
    text = ''.join(line.rstrip() + '\n' for line in printed.strip('\n').rstrip().splitlines())
    return re.fullmatch(pattern, text) is not None


class Place:
    """The folder in which a page is done: links to the tree, and what the commands write."""

    def __init__(self, tree, scratch, program):
        self.scratch = scratch
        shutil.rmtree(scratch, ignore_errors=True)
        os.makedirs(os.path.join(scratch, 'build'))
        os.makedirs(os.path.join(scratch, 'results'))
        for name in os.listdir(tree):
            if name not in LINKED:
                os.symlink(os.path.join(tree, name), os.path.join(scratch, name))
        shutil.copytree(os.path.join(tree, 'configs'), os.path.join(scratch, 'configs'))
        os.symlink(os.path.join(tree, 'results/reference'), os.path.join(scratch, 'results/reference'))
        os.symlink(os.path.dirname(program), os.path.join(scratch, 'build/release'))
        with open(os.path.join(scratch, 'tcasim'), 'w', encoding='utf-8') as script:
            script.write(f'#!/bin/sh\nTCASIM_HOME="{scratch}" exec "{program}" "$@"\n')
        os.chmod(os.path.join(scratch, 'tcasim'), 0o755)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith('TCASIM_')}
        self.environment.update(LC_ALL='C.UTF-8', OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')

    def run(self, command):
        """The status and the output. Variables that a command sets are there for the next ones."""
        kept = os.path.join(self.scratch, 'build/exported')
        script = f'set -a\n[ ! -e "{kept}" ] || . "{kept}"\n{command}\nstatus=$?\nexport -p >"{kept}"\nexit $status\n'
        try:
            done = subprocess.run(['bash', '-c', script], cwd=self.scratch, env=self.environment, timeout=TIME_LIMIT_S,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  encoding='utf-8', errors='replace', check=False)
        except subprocess.TimeoutExpired:
            return None, ''
        return done.returncode, done.stdout

    def write(self, block):
        path = os.path.join(self.scratch, block.title)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'a' if 'append' in block.notes else 'w', encoding='utf-8') as file:
            file.write('\n'.join(block.lines) + '\n')


def console_do(page, block, place):
    """Whether every command of the block did what is shown."""
    well = True
    commands = commands_of(block)
    for line, command, shown in commands:
        wanted = int(block.notes.get('status', 0)) if line == commands[-1][0] else 0
        status, printed = place.run(command)
        if status != wanted:
            print(f'{page}:{line}: `{command}` ended with {"the time limit" if status is None else status}, '
                  f'not with {wanted}, and printed\n{printed}')
            well = False
        elif not shown_matches(shown, printed):
            print(f'{page}:{line}: `{command}` printed something else than is shown:')
            printed_lines = [text.rstrip() for text in printed.rstrip().split('\n')]
            print('\n'.join(difflib.unified_diff(shown, printed_lines, 'shown', 'printed', n=2, lineterm='')))
            well = False
    return well


def picture_compare(page, block, place):
    shown, made = (os.path.join(os.path.dirname(page), block.title), os.path.join(place.scratch, block.notes['picture']))
    try:
        with open(shown, 'rb') as first, open(made, 'rb') as second:
            if first.read() == second.read():
                return True
    except OSError as error:
        print(error)
    print(f'{page}:{block.line}: the picture is not what the commands made: cp {made} {shown}')
    return False


def page_do(page, scratch, program):
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    blocks, mistakes = blocks_read(page)
    for line, text in mistakes:
        print(f'{page}:{line}: {text}')
    needed = [name for block in blocks for name in (block.notes.get('needs') or '').split()]
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        print(f'{page} is skipped: no {" ".join(missing)}')
        return 77
    place = Place(tree, scratch, program)
    well = not mistakes
    for block in blocks:
        if 'not run' in block.notes:
            continue
        if 'instead' in block.notes:
            block.lines = ['$ ' + block.notes['instead'], '...']
        if block.language == 'console':
            well &= console_do(page, block, place)
        elif block.language == 'picture' and 'picture' in block.notes:
            well &= picture_compare(page, block, place)
        elif block.title and block.language != 'picture':
            place.write(block)
    return 0 if well else 1


def pages_of(tree):
    """All pages of the documents, without decisions."""
    pages = [os.path.join(tree, name) for name in ('README.md', 'CONTRIBUTING.md')]
    for folder, folders, names in os.walk(os.path.join(tree, 'docs')):
        folders[:] = [name for name in folders if name != 'decisions']
        pages += [os.path.join(folder, name) for name in names if name.endswith('.md')]
    return sorted(pages)


def anchors_of(path):
    """The anchors of a page's headings, as mkdocs makes them."""
    with open(path, encoding='utf-8') as page:
        text = re.sub(r'^ *```.*?^ *```$', '', page.read(), flags=re.MULTILINE | re.DOTALL)
    words = [re.sub(r'[^\w\s-]', '', heading).strip().lower() for heading in re.findall(r'^#+ (.*)', text, re.MULTILINE)]
    return {re.sub(r'[-\s]+', '-', heading) for heading in words}


def link_mistakes(path):
    """Links to files or headings that do not exist."""
    with open(path, encoding='utf-8') as page:
        for number, line in enumerate(page, 1):
            for target, anchor in re.findall(r'\]\(([^)\s#:]*)(?:#([^)\s]*))?\)', re.sub(r'`[^`]*`', '', line)):
                file = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
                if not os.path.exists(file):
                    yield number, f'the link leads to no file: {target}'
                elif anchor and anchor not in anchors_of(file):
                    yield number, f'the link leads to no heading: {target}#{anchor}'


def tree_check(tree):
    """That all pages are written so, that links lead somewhere, and that CMakeLists.txt names pages with commands."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'CMakeLists.txt'), encoding='utf-8') as file:
        listed = file.read()
    count = 0
    for page in pages_of(tree):
        blocks, mistakes = blocks_read(page)
        does = any(block.language == 'console' and 'not run' not in block.notes for block in blocks)
        name = os.path.relpath(page, tree)
        if does and not re.search(r'^\s*' + re.escape(name) + r'\)?$', listed, re.MULTILINE):
            mistakes.append((1, 'tests/documents/CMakeLists.txt does not name this page, which has commands'))
        mistakes += link_mistakes(page)
        for line, text in mistakes:
            print(f'{name}:{line}: {text}')
        count += len(mistakes)
    return 1 if count else 0


if __name__ == '__main__':
    if len(sys.argv) == 3 and sys.argv[1] == '--check':
        sys.exit(tree_check(sys.argv[2]))
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(page_do(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])))
