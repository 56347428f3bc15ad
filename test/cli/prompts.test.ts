import { describe, expect, it } from 'vitest';
import { runBinary } from '../helpers/run-binary.js';
import { openTerminal } from '../helpers/run-terminal.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const RETURN = '\r';
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const ARROW_DOWN = '\u001b[B';

const dir = use(await openTempDir());
const env: Record<string, string> = { BSVC_DATA_DIR: dir.path, BSVC_DURABILITY: 'relaxed' };
await runBinary(['project', 'create', 'alpha'], { env });
await runBinary(['project', 'create', 'beta'], { env });

// The pseudo-terminal is that of util-linux.
describe.runIf(process.platform === 'linux')('at a terminal', () => {
  const QUESTIONS: [what: string, argv: string[], question: string][] = [
    ['a question for a text', ['project', 'create'], 'Name of the project:'],
    ['a choice', ['collection', 'list'], 'Which project?'],
    ['a confirmation', ['project', 'delete', 'alpha'], 'alpha'],
    ['a password', ['user', 'create', '--project', 'alpha', '--email', 'a@b.co'], 'assword'],
  ];
  it.each([
    ...QUESTIONS.map((each) => [...each, 'the end of input', CTRL_D] as const),
    ...QUESTIONS.map((each) => [...each, 'Ctrl-C', CTRL_C] as const),
  ])('%s: %j, asked %j and answered by %s, ends with 130, and nothing is done', async (...row) => {
    const [, argv, question, , key] = row;
    const terminal = openTerminal(argv, env);
    await terminal.shows(question);
    terminal.type(key);
    const { code, screen } = await terminal.end();
    expect([code, screen]).toEqual([130, expect.stringContaining('Interrupted.') as string]);
    const list = await runBinary(['project', 'list', '--quiet'], { env });
    expect(list.stdout.trim().split('\n')).toHaveLength(2);
    const acts = JSON.parse((await runBinary(['audit', '--json'], { env })).stdout) as { outcome: string }[];
    expect(acts.filter(({ outcome }) => outcome === 'started')).toEqual([]);
  });

  it('serve offers the first project of an empty store, says what comes next, and never asks in the background', async () => {
    const empty = await openTempDir();
    const settings = { BSVC_DATA_DIR: empty.path, BSVC_DURABILITY: 'relaxed', BSVC_LOG_LEVEL: 'warn' };
    const behind = openTerminal(['serve', '--port', '0'], settings, { background: true });
    await behind.shows('There is no project yet. In another terminal');
    behind.close();
    const terminal = openTerminal(['serve', '--port', '0'], settings);
    await terminal.shows('Create the first one now?');
    terminal.type(RETURN);
    await terminal.shows('Name of the project:');
    terminal.type(`shop${RETURN}`);
    for (const next of ['Project shop was made', 'bsvc collection add posts', 'bsvc data insert posts', 'curl -H'])
      await terminal.shows(next);
    terminal.type(CTRL_C);
    expect((await terminal.end()).code).toBe(0);
    const again = openTerminal(['serve', '--port', '0'], settings);
    await again.shows('bsvc is listening');
    again.type(CTRL_C);
    expect((await again.end()).screen).not.toContain('Create the first');
    await empty.remove();
  });

  it('a terminal that is closed at a question leaves no act without an end', async () => {
    const readActs = async () =>
      JSON.parse((await runBinary(['audit', '--json'], { env })).stdout) as { action: string; outcome: string }[];
    const before = (await readActs()).length;
    for (const [, argv, question] of QUESTIONS) {
      const terminal = openTerminal(argv, env);
      await terminal.shows(question);
      terminal.close();
      await terminal.end();
    }
    // The first and the second question come before anything is begun.
    await expect
      .poll(async () => {
        const acts = (await readActs()).slice(0, -before || undefined);
        return acts.map(({ action, outcome }) => [action, outcome]).toSorted();
      })
      .toEqual([
        ['project delete', 'failed'],
        ['user create', 'failed'],
      ]);
    const list = await runBinary(['project', 'list', '--quiet'], { env });
    expect(list.stdout.trim().split('\n')).toHaveLength(2);
  });

  it('a project is created by answering, and its keys are shown', async () => {
    const terminal = openTerminal(['project', 'create'], env);
    await terminal.shows('Name of the project:');
    terminal.type(`asked${RETURN}`);
    await terminal.shows('Created project asked');
    const { code, screen } = await terminal.end();
    expect(code).toBe(0);
    expect(screen).toMatch(/secret key +sk_live_/);
  });

  it('a collection is led through: project, fields, access', async () => {
    const terminal = openTerminal(['collection', 'add'], env);
    await terminal.shows('Name of the collection:');
    terminal.type(`posts${RETURN}`);
    await terminal.shows('Which project?');
    terminal.type(RETURN);
    await terminal.shows('Which documents may it hold?');
    terminal.type(RETURN);
    await terminal.shows('First field');
    terminal.type(`title:Strng!${RETURN}`);
    await terminal.shows('expected a type');
    terminal.type(`${'\b'.repeat('title:Strng!'.length)}title:String!${RETURN}`);
    await terminal.shows('Next field');
    terminal.type(`views:Number=0${RETURN}`);
    await terminal.shows('Next field');
    terminal.type(`author${RETURN}`);
    await terminal.shows('What is author?');
    terminal.type(`Ref${RETURN}`);
    await terminal.shows('Which collection');
    terminal.type(RETURN);
    await terminal.shows('Must every document have it?');
    terminal.type(`y${RETURN}`);
    await terminal.shows('Must its values be unique?');
    terminal.type(RETURN);
    await terminal.shows('Next field');
    terminal.type(RETURN);
    await terminal.shows('Who may access it?');
    await terminal.shows('❯ only your server, with the secret key');
    terminal.type(ARROW_DOWN);
    await terminal.shows('❯ signed-in users, each their own documents');
    terminal.type(ARROW_DOWN);
    await terminal.shows('❯ everyone reads, signed-in users write');
    terminal.type(RETURN);
    await terminal.shows('owner');
    terminal.type(RETURN);
    await terminal.shows('Try: curl');
    expect((await terminal.end()).code).toBe(0);
    const shown = await runBinary(['collection', 'show', 'posts', '--project', 'alpha', '--json'], { env });
    expect(JSON.parse(shown.stdout)).toMatchObject({
      fields: [
        { name: 'title', type: 'String', required: true },
        { name: 'views', type: 'Number', default: 0 },
        { name: 'author', type: 'Ref', ref: 'users', required: true },
      ],
      rls: { mode: 'public-read', ownerField: 'userId' },
    });
  });

  it('a collection is changed by answering', async () => {
    const edit = openTerminal(['collection', 'edit', 'posts', '--project', 'alpha'], env);
    await edit.shows('What is to change in posts?');
    edit.type(RETURN);
    await edit.shows('Its name');
    edit.type(`note:String${RETURN}`);
    await edit.shows('note');
    expect((await edit.end()).code).toBe(0);
    const rls = openTerminal(['collection', 'rls', 'posts', '--project', 'alpha'], env);
    await rls.shows('❯ signed-in users read and write their own');
    rls.type(RETURN);
    await rls.shows('owner');
    rls.type(RETURN);
    await rls.shows('posts: private, owner field userId');
    expect((await rls.end()).code).toBe(0);
  });

  it('an address that webhooks refuse is refused before anything else is asked', async () => {
    const terminal = openTerminal(['webhook', 'add', '--project', 'alpha'], env);
    await terminal.shows('Address of the receiver:');
    terminal.type(`http://127.0.0.1:9/${RETURN}`);
    await terminal.shows('The url must be an https:// address');
    terminal.type(CTRL_C);
    const { code, screen } = await terminal.end();
    expect([code, screen.includes('Events to send')]).toEqual([130, false]);
  });

  it('a destructive command asks for the name, and does nothing for another', async () => {
    const wrong = openTerminal(['project', 'delete', 'beta'], env);
    await wrong.shows('Type "beta" to go on');
    wrong.type(`alpha${RETURN}`);
    await wrong.shows('nothing was done');
    expect((await wrong.end()).code).toBe(1);
    const right = openTerminal(['project', 'delete', 'beta'], env);
    await right.shows('Type "beta" to go on');
    right.type(`beta${RETURN}`);
    await right.shows('Deleted project beta');
    expect((await right.end()).code).toBe(0);
  });

  it('a password is typed twice, hidden, and again until it is long enough', async () => {
    const terminal = openTerminal(['user', 'create', '--project', 'alpha', '--email', 'ann@example.com'], env);
    await terminal.shows('Password:');
    terminal.type(`pqr${RETURN}`);
    await terminal.shows('must have at least 6 bytes');
    terminal.type(`stuvw${RETURN}`);
    await terminal.shows('Once more:');
    terminal.type(`pqrstuvx${RETURN}`);
    await terminal.shows('The two passwords differ');
    await terminal.shows('Password:');
    terminal.type(`pqrstuvw${RETURN}`);
    await terminal.shows('Once more:');
    terminal.type(`pqrstuvw${RETURN}`);
    await terminal.shows('Created user ann@example.com');
    const { code, raw } = await terminal.end();
    expect(code).toBe(0);
    expect(raw).not.toMatch(/pqr|stu/);
  });

  it('every value that a command misses is asked for', async () => {
    const bucket = openTerminal(['byok', 'bucket', 'set', '--project', 'alpha', '--no-verify'], env);
    await bucket.shows('Name of the bucket:');
    bucket.type(`alpha-files${RETURN}`);
    await bucket.shows('Address of the S3 service:');
    bucket.type(RETURN);
    await bucket.shows('Access key id:');
    bucket.type(`AKIAALPHA${RETURN}`);
    await bucket.shows('Secret access key:');
    bucket.type(`hidden-away${RETURN}`);
    await bucket.shows('alpha-files');
    const { code, raw } = await bucket.end();
    expect(code).toBe(0);
    expect(raw).not.toContain('hidden');
    const mail = openTerminal(['mail', 'test', '--project', 'alpha'], env);
    await mail.shows('Who gets it:');
    mail.type(`me@example.com${RETURN}`);
    await mail.shows('Queued for me@example.com');
    expect((await mail.end()).code).toBe(0);
  });

  it('nothing is asked with --no-input, or where CI is set', async () => {
    for (const [words, more] of [
      [['project', 'create', '--no-input'], {}],
      [['project', 'create'], { CI: 'true' }],
    ] as const) {
      expect((await openTerminal([...words], { ...env, ...more }).end()).code).toBe(2);
    }
  });

  it('tables are drawn in colour, without it where NO_COLOR is set', async () => {
    const list = async (more: Record<string, string>): Promise<string> =>
      (await openTerminal(['project', 'list'], { ...env, ...more }).end()).raw;
    expect(await list({})).toMatch(/\u001b\[36mNAME/);
    const plain = await list({ NO_COLOR: '1' });
    expect(plain).toContain('NAME');
    expect(plain).not.toContain('\u001b[3');
  });
});
