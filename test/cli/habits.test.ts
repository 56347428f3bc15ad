import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS, type CommandNode, ROOT_EXAMPLES, buildProgram } from '../world/cli.js';
import { openCliHome, runCli } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

function listPaths(nodes: readonly CommandNode[], path: string[] = []): { words: string[]; leaf: boolean }[] {
  return nodes.flatMap((node) => [
    { words: [...path, node.name], leaf: !node.commands },
    ...(node.commands ? listPaths(node.commands, [...path, node.name]) : []),
  ]);
}

const PATHS = listPaths(COMMANDS);

async function listExamples(nodes: readonly CommandNode[] = COMMANDS): Promise<string[]> {
  const found = nodes.map(async (node) =>
    node.commands ? listExamples(node.commands) : (await node.load()).default.examples,
  );
  return [...new Set([...ROOT_EXAMPLES, ...(await Promise.all(found)).flat()])];
}

const EXAMPLES = await listExamples();

/** What a shell makes of a line: the words of each run of bsvc. Nothing but bsvc is run, and no file is touched. */
function listInvocations(line: string): string[][] {
  const bsvc = `bsvc() { printf '%s\\n' "$(printf '%s\\t' bsvc "$@")" >&9; }`;
  const others = 'source() { cat "$@" >/dev/null; }; gunzip() { :; }; wc() { :; }; jq() { :; }';
  const script = `set -e; shopt -s failglob; ${bsvc}; ${others}; ${line}\nwait`;
  const { output, status } = spawnSync('bash', ['-c', `exec 9>&1; ${script}`], {
    cwd: pasting,
    env: { PATH: process.env.PATH!, HOME: pasting },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  expect({ line, status, stderr: output[2] }).toEqual({ line, status: 0, stderr: '' });
  return output[1]!
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => text.split('\t').slice(0, -1));
}
const home = use(openCliHome());
const pasting = join(home.dir, 'pasting');
for (const dir of ['.zfunc', '.config/fish/completions']) mkdirSync(join(pasting, dir), { recursive: true });
for (const file of ['secret.txt', 'password.txt', 'key.txt', 'pipeline.json', 'operations.json'])
  writeFileSync(join(pasting, file), '');

/** What a terminal could obey: everything below a space but ends of lines and tabs, DEL and C1. */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

describe('bsvc --help', () => {
  it('is what bare bsvc prints, with exit 0', async () => {
    const [bare, asked, word] = await Promise.all([runCli([]), runCli(['--help']), runCli(['help'])]);
    expect(bare.code).toBe(0);
    expect(bare.stdout).toMatchSnapshot();
    expect([asked.stdout, word.stdout]).toEqual([bare.stdout, bare.stdout]);
  });

  it.each(PATHS)('explains $words with examples', async ({ words }) => {
    const { code, stdout, stderr } = await runCli([...words, '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/\nExamples:\n {2}\$ /);
    expect(stdout).toMatchSnapshot();
    expect((await runCli(['help', ...words])).stdout).toBe(stdout);
  });

  it.each(EXAMPLES)('gives an example that can be pasted: %s', async (example) => {
    const [words, ...others] = listInvocations(example);
    expect({ words, others }).toEqual({ words: expect.arrayContaining(['bsvc']) as string[], others: [] });
    const path: CommandNode[] = [];
    for (const word of words!.slice(1)) {
      const node = (path.length === 0 ? COMMANDS : (path.at(-1)!.commands ?? [])).find(({ name }) => name === word);
      if (node) path.push(node);
    }
    const { program } = buildProgram(path, (await path.at(-1)!.load!()).default);
    await expect(program.parseAsync(words!.slice(1), { from: 'user' })).resolves.toBeDefined();
  });
});

describe('wrong usage is exit 2', () => {
  it.each([
    [['projct'], "Unknown command 'projct' (Did you mean project?)"],
    [['project', 'craete', 'x'], "Unknown command 'craete' (Did you mean create?)"],
    [['data', 'list', 'posts'], "Unknown command 'list' (Did you mean query?)"],
    [['data', 'remove', 'posts', 'x'], "Unknown command 'remove' (Did you mean delete?)"],
    [['collection', 'delete', 'posts'], "Unknown command 'delete' (Did you mean drop?)"],
    [['webhook', 'dance'], "Unknown command 'dance'. See"],
    [['project', 'create', 'x', '--plna', 'pro'], "Unknown option '--plna' (Did you mean --plan?)"],
    [['project', 'create', 'x', '--plan'], "Option '--plan <plan>' argument missing"],
    [['project', 'list', '--data-dir', '--json'], "Option '--data-dir <dir>' argument missing: '--json' is an option"],
    [
      ['project', 'create', 'x', '--plan', 'gold'],
      "Option '--plan <plan>' cannot be 'gold': choose one of free, pro. See",
    ],
    [['project', 'create', 'x', 'y'], 'Too many arguments'],
    [['project', 'create'], 'The argument <name> is missing. See "bsvc project create --help".'],
    [['project'], 'A command is missing: create, list, show, update'],
    [
      ['user', 'list', '--limit', 'x', '--project', 'y'],
      "Option '--limit <n>' cannot be 'x': it must be a whole number",
    ],
    [['user', 'list', '--limit', '0', '--project', 'y'], 'it must be a whole number from 1 to'],
    [['webhook', 'deliveries', 'x', '--limit', 'all', '--project', 'y'], 'it must be a whole number from 1 to 100'],
    [['key', 'create', '--project', 'x'], 'Add --type publishable or --type secret.'],
    [['collection', 'list'], 'No project named'],
    [['collection', 'drop', 'posts', '--project', 'x'], '--yes'],
    [['collection', 'add', 'posts', '--field', 'title:Strng!'], 'expected a type'],
    [['collection', 'add', 'posts', '--owner-field', 'x'], '--owner-field needs --rls'],
    [['collection', 'edit', 'posts', '--project', 'x'], 'Nothing to change'],
    [['collection', 'rls', 'posts', '--project', 'x'], 'Give one of --mode'],
    [['collection', 'add', 'posts', '--project', 'x'], 'declare one with --field'],
    [['webhook', 'edit', 'w', '--project', 'x'], 'Nothing to change: give --url'],
    [['backup', '--out', 'a', '--to', 'b'], 'Give either --out or --to, not both.'],
    [['backup', '--list'], 'add --to <place> or set BSVC_BACKUP_TO.'],
    [['key', 'rotate', '--project', 'x', '--type', 'secret', '--grace', 'soon'], 'must be a duration'],
    [
      ['project', 'update', 'x', '--limit', 'mail=lots'],
      'it must be name=number or name=plan, with one of mail, webhooks, storage, database, streams, userShare, requests, userRequests, authRequests.',
    ],
    [['project', 'update', 'x', '--limit', 'mail=5mb'], 'mail is a number without a unit, for example mail=200.'],
    [['project', 'update', 'x', '--limit', 'database=5tb'], 'it must be name=number'],
    [['project', 'update', 'x'], 'Nothing to change'],
    [
      ['data', 'import', 'posts', 'posts.xml', '--project', 'x'],
      'Add --format ndjson|json|csv: the name "posts.xml" does not tell it.',
    ],
    [['move-to'], 'Address of the MongoDB (mongodb://…) is missing: add --uri-stdin or --uri-env <NAME>.'],
    [['operator', 'add', '--email', 'a@b.co'], 'Password is missing: add --password-stdin or --password-env <NAME>.'],
    [['completion', 'tcsh'], 'choose one of bash, zsh, fish'],
    [['settings', '--env-file', 'absent.env'], 'there is no such file'],
    [['serve', '--port', 'http'], 'BSVC_PORT must be a whole number'],
  ])('%j', async (argv, text) => {
    const { code, stdout, stderr } = await home.bsvc(argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(text);
  });

  it('a setting that another one needs is missing', async () => {
    const env = { MONGODB_URI: 'mongodb://127.0.0.1:9/never' };
    const { code, stderr } = await home.bsvc(['project', 'list'], { env });
    expect([code, stderr]).toEqual([2, expect.stringContaining('BSVC_SECRET_KEY is required with MONGODB_URI')]);
  });

  it('says the same as JSON on stderr with --json, and nothing on stdout', async () => {
    const message = 'The argument <name> is missing. See "bsvc project create --help".';
    const { code, stdout, stderr } = await home.bsvc(['project', 'create', '--json']);
    const [line, json] = stderr.trim().split('\n');
    expect({ code, stdout, line }).toEqual({ code: 2, stdout: '', line: `bsvc: ${message}` });
    expect(JSON.parse(json!)).toEqual({ success: false, code: 'USAGE', message });
  });

  it('points at the character of a bad field spec', async () => {
    const { stderr } = await home.bsvc(['collection', 'add', 'posts', '--field', 'title:Strng!']);
    expect(stderr).toContain('  title:Strng!\n        ^\n');
  });
});

describe('bsvc settings', () => {
  const dir = join(home.dir, 'settings');
  beforeAll(() => {
    mkdirSync(dir);
    writeFileSync(join(dir, '.env'), 'BSVC_PORT=5001\nBSVC_HOST="0.0.0.0" # all\nBSVC_ADMIN_TOKEN=hush-hush\n');
    writeFileSync(join(dir, 'other.env'), 'BSVC_PORT=5002\n');
  });
  const read = async (argv: string[], env: Record<string, string> = {}) => {
    const outcome = await runCli(['settings', '--json', ...argv], { cwd: dir, env });
    const rows = outcome.json<{ env: string; value: unknown; source: string }[]>();
    return (name: string) => rows.filter((row) => row.env === name).map(({ value, source }) => ({ value, source }))[0];
  };

  it('takes flag before environment before env file before default', async () => {
    const fromFile = await read([]);
    expect(fromFile('BSVC_PORT')).toEqual({ value: 5001, source: '.env' });
    expect(fromFile('BSVC_HOST')).toEqual({ value: '0.0.0.0', source: '.env' });
    expect(fromFile('BSVC_LOG_LEVEL')).toEqual({ value: 'info', source: 'default' });
    expect((await read([], { BSVC_PORT: '5003' }))('BSVC_PORT')).toEqual({ value: 5003, source: 'environment' });
    const named = await read(['--env-file', 'other.env']);
    expect(named('BSVC_PORT')).toEqual({ value: 5002, source: 'other.env' });
    expect(named('BSVC_HOST')).toEqual({ value: '127.0.0.1', source: 'default' });
    const flagged = await read(['--data-dir', 'here'], { BSVC_DATA_DIR: '/elsewhere' });
    expect(flagged('BSVC_DATA_DIR')).toEqual({ value: join(dir, 'here'), source: 'flag' });
  });

  it('does not go on without an env file that is there and cannot be read; a directory of that name is none', async () => {
    const odd = join(home.dir, 'odd');
    mkdirSync(join(odd, '.env'), { recursive: true });
    expect((await runCli(['settings'], { cwd: odd })).code).toBe(0);
    const broken = join(home.dir, 'broken');
    mkdirSync(broken);
    symlinkSync('.env', join(broken, '.env'));
    const { code, stderr } = await runCli(['settings'], { cwd: broken });
    expect({ code, stderr }).toEqual({ code: 2, stderr: 'bsvc: The settings file .env cannot be read (ELOOP).\n' });
  });

  it.each(['\n', '\r\n', '\r'])('reads an env file whose lines end with %j', async (end) => {
    const lines = ['BSVC_DATA_DIR=there', 'export BSVC_PORT="5001"', '# BSVC_HOST is not set', 'BSVC_TYPO=x', ''];
    writeFileSync(join(dir, 'ends.env'), lines.join(end));
    const found = await read(['--env-file', 'ends.env']);
    expect([found('BSVC_DATA_DIR')?.value, found('BSVC_PORT')?.value]).toEqual([join(dir, 'there'), 5001]);
  });

  it.each(['BSVC_DATA_DIR: there', 'BSVC_DATA_DIR there', 'export BSVC_DATA_DIR', 'BSVC_DATA_DIR'])(
    'does not take the default for a setting whose line gives no value: %s',
    async (line) => {
      writeFileSync(join(dir, 'lost.env'), `OTHER=1\n${line}\n`);
      const { code, stderr } = await runCli(['settings', '--env-file', 'lost.env'], { cwd: dir });
      const said = 'bsvc: lost.env gives BSVC_DATA_DIR no value: write BSVC_DATA_DIR=<value>.\n';
      expect({ code, stderr }).toEqual({ code: 2, stderr: said });
    },
  );

  it('masks secrets in every form of output', async () => {
    for (const form of [[], ['--json'], ['--quiet']]) {
      const { stdout } = await runCli(['settings', ...form], { cwd: dir, env: { MONGODB_URI: 'mongodb://u:pw@h/x' } });
      expect(stdout).not.toMatch(/hush|u:pw/);
      expect(stdout).toContain('*****');
    }
  });

  it('names every wrong setting at once', async () => {
    const { code, stderr } = await runCli(['settings'], {
      cwd: dir,
      env: { BSVC_PORT: '99999', BSVC_DURABILITY: 'none', MONGODB_URI: 'mysql://u:pw@h' },
    });
    expect(code).toBe(2);
    expect(stderr).toMatch(/MONGODB_URI must start with.*BSVC_DURABILITY must be one of.*BSVC_PORT must be/s);
    expect(stderr).not.toContain('u:pw');
  });
});

describe('colour and tables', () => {
  it('are for terminals: columns of plain text elsewhere', async () => {
    const plain = await runCli(['settings']);
    expect(plain.stdout).not.toMatch(/\u001b|SETTING/);
    const drawn = await runCli(['settings'], { terminal: true });
    expect(drawn.stdout).toMatch(/\u001b\[.*SETTING/s);
  });

  it.each([
    [['settings', '--no-color'], {}],
    [['settings'], { NO_COLOR: '1' }],
    [['settings'], { TERM: 'dumb' }],
  ])('%j with %j has no colour at a terminal', async (argv, env) => {
    const { stdout, stderr } = await runCli(argv, { terminal: true, env });
    expect(stdout + stderr).not.toContain('\u001b');
    expect(stdout).toContain('SETTING');
  });

  it('fit the terminal: long texts wrap between words, and every word of them is there', async () => {
    const { stdout } = await runCli(['settings', '--no-color'], { terminal: true, columns: 100 });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.filter((line) => line.length > 100)).toEqual([]);
    const column = lines[0]!.indexOf('MEANING');
    const at = lines.findIndex((line) => line.startsWith('BSVC_ACCESS_TOKEN_TTL '));
    const next = lines.findIndex((line, n) => n > at && /^BSVC_/.test(line));
    const meaning = lines.slice(at, next).map((line) => line.slice(column).trim());
    expect(meaning.join(' ')).toBe('lifetime of access tokens');
  });

  it('keep ids whole, and show times to the second', async () => {
    const { project } = (await home.bsvc(['project', 'create', 'wide', '--json'])).json<{ project: { id: string } }>();
    const narrow = await home.bsvc(['project', 'list'], { terminal: true, columns: 40, env: { NO_COLOR: '1' } });
    expect(narrow.stdout).toMatch(new RegExp(`^(.*  )?${project.id}(  |$)`, 'm'));
    const wide = await home.bsvc(['project', 'list'], { terminal: true, columns: 200, env: { NO_COLOR: '1' } });
    expect(wide.stdout).toMatch(/  \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ(  |$)/m);
  });

  it('keep an id whole beside other words, and tell amounts as a person reads them', async () => {
    const { project } = (await home.bsvc(['project', 'create', 'seen', '--json'])).json<{ project: { id: string } }>();
    const env = { NO_COLOR: '1', PW: 'long enough', BSVC_BCRYPT_COST: '4' };
    const words = ['operator', 'add', '--email', 'a@b.co', '--project', 'seen', '--password-env', 'PW'];
    expect((await home.bsvc(words, { env })).code).toBe(0);
    const operators = await home.bsvc(['operator', 'list'], { terminal: true, columns: 110, env });
    expect(operators.stdout).toContain(project.id);
    const shown = await home.bsvc(['project', 'show', 'seen']);
    expect(shown.stdout).toMatch(/0 files, 0 bytes of 100 MB used/);
    expect(shown.stdout).toMatch(/database +50 MB\n/);
  });

  it('show escape sequences of stored texts instead of sending them to the terminal', async () => {
    await home.bsvc(['project', 'create', 'mails', '--if-not-exists']);
    const body = join(home.dir, 'body.txt');
    const hostile = 'one\u001b]0;title\u0007two\u009b2Jthree\u007f\tfour\r\nfive\rsix';
    writeFileSync(body, hostile);
    const set = ['mail', 'template', 'set', 'odd', '--project', 'mails', '--subject', 'x', '--text', body];
    expect((await home.bsvc(set)).code).toBe(0);
    const show = ['mail', 'template', 'list', 'odd', '--project', 'mails'];
    expect((await home.bsvc(show)).stdout).toContain(hostile);
    expect((await home.bsvc(show, { terminal: true })).stdout).toContain(
      'one\\u001b]0;title\\u0007two\\u009b2Jthree\\u007f\tfour\r\nfive\\rsix',
    );
    const shown = await home.bsvc([...show, '--json'], { terminal: true });
    expect(shown.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(shown.json()).toMatchObject({ text: hostile });
    const refused = await home.bsvc(['project', 'show', '\u001b[2Jnobody']);
    expect(refused.stderr).toContain('"\\u001b[2Jnobody"');
  });

  it.each([
    ['data export', ['data', 'export', 'odd']],
    ['data export as CSV', ['data', 'export', 'odd', '--format', 'csv']],
    ['data export as JSON', ['data', 'export', 'odd', '--json']],
    ['data query', ['data', 'query', 'odd']],
    ['data query as JSON', ['data', 'query', 'odd', '--json']],
    ['the audit log as JSON', ['audit', '--json']],
  ])(
    '%s: sends a terminal no control character that is stored, and everything else what is stored',
    async (_, words) => {
      const hostile = 'one\u0085two\u009b2Jthree\u007f';
      await home.bsvc(['project', 'create', 'odd', '--if-not-exists']);
      const inOdd = ['--project', 'odd'];
      await home.bsvc(['collection', 'add', 'odd', '--field', 't:String', '--if-not-exists', ...inOdd]);
      await home.bsvc(['data', 'import', 'odd', '-', '--format', 'ndjson', ...inOdd], {
        stdin: JSON.stringify({ t: hostile }),
      });
      await home.bsvc(['project', 'show', hostile]);
      const command = words[0] === 'audit' ? words : [...words, ...inOdd];
      const drawn = await home.bsvc(command, { terminal: 'stdout' });
      expect([drawn.code, drawn.stdout]).toEqual([0, expect.not.stringMatching(CONTROL)]);
      if (words[0] !== 'audit') {
        expect(drawn.stdout).toContain('\\u009b2J');
        expect((await home.bsvc(command)).stdout).toContain(hostile);
      }
    },
  );

  it('marks errors in colour at a terminal only', async () => {
    expect((await runCli(['nothing'], { terminal: true })).stderr).toContain('\u001b[31m');
    expect((await runCli(['nothing'])).stderr).not.toContain('\u001b');
  });
});

describe('a refusal', () => {
  beforeAll(() => void execFileSync('mkfifo', [join(home.dir, 'pipe')]));

  it.each([
    [['project', 'show', 'nobody'], 'There is no project "nobody". "bsvc project list" shows them.'],
    [['user', 'update', 'a@b.co', '--disable'], 'The project has no user "a@b.co". "bsvc user list" shows them.'],
    [
      ['collection', 'edit', 'users', '--set-field', 'x:String'],
      'has no field "x". --add-field declares a further one',
    ],
    [['collection', 'edit', 'users', '--add-field', 'name:Number'], 'has a field "name" already. --set-field'],
    [['data', 'query', 'nope'], 'There is no collection "nope" in this project. "bsvc collection list" shows them.'],
    [['byok', 'bucket', 'show', '--check'], 'has no bucket of its own. "bsvc byok bucket set" gives it one.'],
    [['backup', '--out', 'absent/x.backup'], 'absent to write into. Make it, or choose another --out.'],
    [['project', 'export', '--out', 'absent/x.yaml'], 'absent to write into.'],
    [['data', 'export', 'users', '--out', 'absent/x.json'], 'absent to write into.'],
    // A rename would put an end to it.
    [['data', 'export', 'users', '--out', 'pipe', '--format', 'json'], 'pipe is no regular file.'],
    [['backup', '--out', 'pipe'], 'pipe is no regular file.'],
    [['backup', '--out', '.'], 'is a directory.'],
  ])('%j says what to do next', async (argv, text) => {
    await home.bsvc(['project', 'create', 'refusing', '--if-not-exists']);
    const { code, stdout, stderr } = await home.bsvc(argv, { env: { BSVC_PROJECT: 'refusing' } });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(text);
    expect(stderr).toMatch(/^bsvc: .*\.\n$/);
  });
});

describe('bsvc completion', () => {
  const offered = async (before: readonly string[], current = '') =>
    (await home.bsvc(['completion', 'words', '--', before.join('\n'), current])).stdout.trim().split('\n');

  it.each(['bash', 'zsh', 'fish'])('prints a script for %s, which asks for the words', async (shell) => {
    const { code, stdout } = await runCli(['completion', shell]);
    expect(code).toBe(0);
    expect(stdout).toContain('bsvc completion words --no-input -- ');
  });

  it('knows every command, its options and what else one can be asked for', async () => {
    const groups = new Set(PATHS.map(({ words }) => words.slice(0, -1).join('\n')));
    for (const group of groups) {
      const words = PATHS.map((path) => path.words).filter((path) => path.slice(0, -1).join('\n') === group);
      expect(await offered(group.split('\n'))).toEqual(words.map((path) => path.at(-1)));
    }
    expect(await offered(['project'], 'c')).toEqual(['create']);
    expect(await offered(['project', 'create', 'x'], '--i')).toEqual(['--if-not-exists']);
    expect(await offered(['byok', 'set'], '--mail')).toEqual(['--mail-key-stdin', '--mail-key-env']);
    expect(await offered(['project', 'create'])).toEqual(['']);
    expect(await offered(['completion'])).toEqual(['bash', 'zsh', 'fish']);
  });

  it('knows the names of projects, collections and operators', async () => {
    await home.bsvc(['project', 'create', 'named', '--if-not-exists']);
    await home.bsvc(['collection', 'add', 'letters', '--flexible', '--project', 'named', '--if-not-exists']);
    const env = { PW: 'long enough', BSVC_BCRYPT_COST: '4' };
    await home.bsvc(['operator', 'add', '--email', 'named@example.test', '--password-env', 'PW'], { env });
    expect(await offered(['project', 'show'])).toContain('named');
    expect(await offered(['key', 'list', '--project'], 'nam')).toEqual(['named']);
    expect(await offered(['operator', 'remove', '--yes'])).toContain('named@example.test');
    const { stdout } = await runCli(['completion', 'bash']);
    // What Tab asks for behind "bsvc collection show", and what it then offers.
    const script = `bsvc() { printf '%s|' "$@" >&2; printf 'letters\nusers\n'; }
${stdout.replace('2>/dev/null', '')}
COMP_WORDS=(bsvc collection show --project named ''); COMP_CWORD=5; _bsvc; echo "\${COMPREPLY[@]}"`;
    const tab = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
    expect(tab.stdout).toBe('letters users\n');
    expect((await home.bsvc(tab.stderr.split('|').slice(0, -1))).stdout).toBe('letters\nusers\n');
  });
});

describe('--if-not-exists', () => {
  const env = { BSVC_PROJECT: 'found', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_BCRYPT_COST: '4', PW: 'long enough' };
  const HOOK = ['webhook', 'add', '--url', 'http://127.0.0.1:9/', '--events'];
  const OPERATOR = ['operator', 'add', '--email', 'ann@found.example', '--password-env', 'PW'];

  it.each([
    [['project', 'create', 'found'], ['--plan', 'pro'], 'plan: free -> pro'],
    [['collection', 'add', 'posts', '--field', 'a:String', '--index', 'a'], ['--field', 'b:Date'], '+ b'],
    [['collection', 'add', 'diary', '--field', 'a:String', '--rls', 'private'], ['--field', 'a:Date'], '~ a'],
    [[...HOOK, 'posts.insert'], ['--events', 'posts.update'], '+ posts.update'],
    [OPERATOR, ['--role', 'viewer'], 'role: owner -> viewer'],
  ])('of %j changes nothing, and tells what is not as asked for: %j', async (words, more, unmet) => {
    const project = await home.bsvc(['project', 'create', 'found', '--if-not-exists'], { env });
    expect(project.code).toBe(0);
    expect((await home.bsvc([...words, '--if-not-exists'], { env })).code).toBe(0);
    const again = await home.bsvc([...words, '--if-not-exists', '--json'], { env });
    expect([again.code, again.json()]).toMatchObject([0, { created: false, unmet: [] }]);
    const other = words.includes('--field') ? words.slice(0, words.indexOf('--field')) : words;
    const asked = [...other, ...more, '--if-not-exists'];
    expect((await home.bsvc([...asked, '--json'], { env })).json()).toMatchObject({ created: false, unmet: [unmet] });
    const { code, stdout } = await home.bsvc(asked, { env });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('nothing was changed') as string });
    expect(stdout).toContain(`Not as asked for: ${unmet}. `);
  });
});

describe('a command that only reads', () => {
  it.each([['project', 'list'], ['doctor'], ['collection', 'list', '--project', 'x']])(
    'makes no store where there is none: %j %j %j',
    async (...words) => {
      const { code, stderr } = await runCli(words, { cwd: home.dir, env: { BSVC_DATA_DIR: join(home.dir, 'typo') } });
      expect(existsSync(join(home.dir, 'typo'))).toBe(false);
      if (words[0] === 'doctor') return;
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringContaining(`There is no database in ${join(home.dir, 'typo')}`) as string,
      });
    },
  );
});

describe('a variable BSVC_… that is no setting', () => {
  it.each([
    ['BSVC_PROT', 'did you mean BSVC_PORT?'],
    ['BSVC_SECRET_KEY_FIEL', 'did you mean BSVC_SECRET_KEY_FILE?'],
    ['BSVC_COMPLETELY_ELSE', '"bsvc settings" lists them all.'],
  ])('is named with the nearest one, and the command goes on: %s', async (name, hint) => {
    const { code, stderr } = await home.bsvc(['project', 'list'], { env: { [name]: '5' } });
    expect([code, stderr]).toEqual([0, expect.stringContaining(`${name} is not a setting: ${hint}`) as string]);
  });
});
