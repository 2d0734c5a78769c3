"""What the site has beside docs/ (mkdocs.yml names this file).

- README.md, CONTRIBUTING.md and CHANGELOG.md of the top folder
- reference/keys.md, reference/commands.md and reference/counters.md, printed by the program: $TCASIM, or
  build/release/tcasim
- the decisions in the navigation, in their order

A link to a file that is not in the site, such as a source, becomes the path of that file.
"""
import os
import posixpath
import re
import subprocess

from mkdocs.exceptions import Abort
from mkdocs.structure.files import File

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOP_PAGES = ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md')
GENERATED = os.path.join(TOP, 'build', 'site-pages')
LINK = re.compile(r'(`[^`\n]*`)|\[((?:`[^`]*`|[^]`])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)')


def program_prints(*arguments):
    program = os.environ.get('TCASIM') or os.path.join(TOP, 'build', 'release', 'tcasim')
    try:
        done = subprocess.run([program, *arguments], env={**os.environ, 'TCASIM_HOME': TOP}, check=True,
                              stdout=subprocess.PIPE, encoding='utf-8')
    except (OSError, subprocess.CalledProcessError) as error:
        raise Abort(f'the pages that the program prints are missing; build it first: {error}') from error
    return done.stdout


def keys_page():
    return ('# Keys\n\nEvery key of a scenario, as `tcasim params --markdown` prints them. [The scenario file on one '
            'page](../yaml.md) shows how they go together.\n\n' + program_prints('params', '--markdown'))


def commands_page():
    page = ('# Options of the commands\n\nWhat `tcasim help COMMAND` prints. [Commands](../commands.md) explains the '
            'commands and the exit statuses.\n')
    for name in re.findall(r'^  (\w+) +\w', program_prints('help'), re.MULTILINE):
        if name != 'help':
            page += f'\n## {name}\n\n```text\n{program_prints("help", name)}```\n'
    return page


def counters_page():
    scenarios = [os.path.join(TOP, path) for path in ('scenarios/topology/ha-pacs-tca-64.yaml',
                                                      'tests/platform/all_devices.yaml',
                                                      'scenarios/faults/cable-pulled-verbs.yaml',
                                                      'scenarios/faults/cable-pulled.yaml')]
    return ('# Counters\n\nWhat each component counts, as `tcasim counters --markdown FILE.yaml` prints it. Names of nodes and '
            'switches are `NODE` and `SWITCH`, numbers of devices `N`. [Results](../results.md#counterscsv) says more about '
            'some of them.\n\n' + program_prints('counters', '--markdown', *scenarios))


def on_config(config):
    decisions = sorted(name for name in os.listdir(os.path.join(TOP, 'docs', 'decisions')) if name[0].isdigit())
    config['nav'].append({'Decisions': ['decisions/README.md'] + ['decisions/' + name for name in decisions]})
    return config


def on_files(files, config):
    for file in [file for file in files if re.search(r'\.(py|pyc)$', file.src_uri)]:
        files.remove(file)
    for name in TOP_PAGES:
        files.append(File(name, TOP, config['site_dir'], config['use_directory_urls']))
    os.makedirs(os.path.join(GENERATED, 'reference'), exist_ok=True)
    for name, make in (('reference/keys.md', keys_page), ('reference/commands.md', commands_page),
                       ('reference/counters.md', counters_page)):
        with open(os.path.join(GENERATED, name), 'w', encoding='utf-8') as page:
            page.write(make())
        files.append(File(name, GENERATED, config['site_dir'], config['use_directory_urls']))
    return files


def on_page_markdown(markdown, page, config, files):
    here = page.file.src_uri
    folder = posixpath.dirname(here if here in TOP_PAGES else 'docs/' + here)

    def changed(link):
        code, text, target, anchor = link.groups()
        if code is not None:
            return code
        path = posixpath.normpath(posixpath.join(folder, target))
        uri = path[len('docs/'):] if path.startswith('docs/') else path
        if path.startswith('docs/') or path in TOP_PAGES:
            return f'[{text}]({posixpath.relpath(uri, posixpath.dirname(here) or ".")}{anchor or ""})'
        return text if text.strip('`') in (path, posixpath.basename(path)) else f'{text} (`{path}`)'

    parts = re.split(r'(^ *```.*?^ *```$)', markdown, flags=re.MULTILINE | re.DOTALL)
    return ''.join(part if part.lstrip().startswith('```') else LINK.sub(changed, part) for part in parts)
