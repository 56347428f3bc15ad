import { mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Config } from '../../../src/config/config.js';
import { conflict } from '../../../src/errors.js';
import { PACKAGE_ROOT, readPackageFile } from '../../../src/package.js';
import { defineCommand, flag, option } from '../../shell/command.js';
import { replaceFile } from '../../formats/replace-file.js';
import { UsageError } from '../../view/exit.js';

/** A unit holds no secret, and systemd’s tools show it to everybody. */
const FOR_ALL = 0o644;

interface Unit {
  file: string;
  text: string;
}

export default defineCommand({
  details: [
    'As root the units are for the system (/etc/systemd/system), run as a user of their own (--user) and can write to the data directory alone; otherwise they are for this user (~/.config/systemd/user).',
    'They run this installation with the present data directory and, when --env-file is given, that settings file. Nothing is started.',
  ].join('\n'),
  examples: [
    'bsvc service install --print',
    'bsvc service install --data-dir /var/lib/bsvc --env-file /etc/bsvc.env',
    'bsvc service install --worker --force',
  ],
  parameters: {
    systemd: flag('--systemd', 'systemd units (the only kind, and the default)'),
    worker: flag('--worker', 'a unit of its own for background work'),
    out: option('--out <dir>', 'directory to write to'),
    print: flag('--print', 'print the units instead of writing them'),
    user: option('--user <name>', 'system units: the user that runs them (default: bsvc)', readUser),
    force: flag('--force', 'replace units that are there'),
  },
  async run(context, input) {
    const { config } = context.settings();
    const system = process.getuid?.() === 0;
    const dir = input.out
      ? resolve(context.io.cwd, input.out)
      : system
        ? '/etc/systemd/system'
        : join(context.io.env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config'), 'systemd', 'user');
    const shared = ['--data-dir', config.dataDir, ...readEnvFileWords(context.io.cwd, context.envFile)];
    const target = system ? 'multi-user.target' : 'default.target';
    const user = input.user ?? 'bsvc';
    const place: Place = { system: system ? hardening(user, config) : '', directory: config.dataDir, target };
    const units = [
      writeUnit('server', ['serve', ...(input.worker ? ['--no-worker'] : []), ...shared], place),
      ...(input.worker ? [writeUnit('worker', ['worker', ...shared], place)] : []),
    ];
    if (input.print) {
      const text = units.map((unit) => `# ${unit.file}\n${unit.text}`).join('\n');
      return { json: units, quiet: text, text: () => text };
    }
    const files = units.map(({ file }) => join(dir, file));
    // All of them are looked at before anything is made.
    const changed: Unit[] = [];
    for (const unit of units) if (await differs(join(dir, unit.file), unit.text, input.force)) changed.push(unit);
    await mkdir(dir, { recursive: true });
    await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
    for (const { file, text } of changed) await replaceFile(join(dir, file), text, FOR_ALL);
    const control = system ? 'systemctl' : 'systemctl --user';
    return {
      json: { files },
      quiet: files,
      text: () =>
        [
          ...files.map((file) => `Wrote ${file}`),
          'Next:',
          ...(system
            ? [
                `  id ${user} >/dev/null 2>&1 || useradd --system --home-dir ${quoteShell(config.dataDir)} --shell /usr/sbin/nologin ${user}`,
                `  chown -R ${user}: ${quoteShell(config.dataDir)}`,
              ]
            : []),
          ...(input.out ? [`  ${control} link ${files.join(' ')}`] : []),
          `  ${control} daemon-reload`,
          `  ${control} enable --now ${units.map(({ file }) => file).join(' ')}`,
          ...(system ? [] : ['  loginctl enable-linger    # so that it runs without you being logged in']),
        ].join('\n'),
    };
  },
});

interface Place {
  /** Lines for system units alone. */
  system: string;
  directory: string;
  target: string;
}

function writeUnit(role: 'server' | 'worker', words: string[], place: Place): Unit {
  const template = readPackageFile('templates', 'systemd', 'bsvc.service');
  const command = [process.execPath, '--', join(PACKAGE_ROOT, 'bin', 'bsvc.js'), ...words].map(quoteWord).join(' ');
  const values: Record<string, string> = { role, root: PACKAGE_ROOT, command, ...place };
  return {
    file: role === 'server' ? 'bsvc.service' : 'bsvc-worker.service',
    text: template.replace(/\{(\w+)\}/g, (_, name: string) => values[name]!),
  };
}

/** Lines that keep a system unit from everything but its work. */
function hardening(user: string, { dataDir, backupTo }: Config): string {
  const text = readPackageFile('templates', 'systemd', 'system.conf');
  const folders = [dataDir, ...(backupTo !== null && !backupTo.startsWith('s3:') ? [resolve(dataDir, backupTo)] : [])];
  const inHome = [PACKAGE_ROOT, process.execPath, ...folders].some((path) => /^\/(home|root)\//.test(path));
  const values: Record<string, string> = {
    user,
    writable: folders.map(quoteWord).join(' '),
    // A checkout, Node or data below a home would be out of reach.
    home: inHome ? 'false' : 'true',
  };
  return text.replace(/\{(\w+)\}/g, (_, name: string) => values[name]!);
}

function readUser(text: string): string {
  if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(text)) throw new Error('must be the name of a user, for example bsvc');
  return text;
}

function quoteShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** True if the file is not there as it is to be; 409 FILE_EXISTS for another one that is not to be replaced. */
async function differs(file: string, text: string, force: boolean): Promise<boolean> {
  const present = await readFile(file, 'utf8').catch(() => null);
  if (present !== null && present !== text && !force) {
    throw conflict('FILE_EXISTS', `${file} is there already and differs. Replace it with --force, or look at --print.`);
  }
  return present !== text;
}

function readEnvFileWords(cwd: string, envFile: string | undefined): string[] {
  return envFile === undefined ? [] : ['--env-file', resolve(cwd, envFile)];
}

/** One word of ExecStart: quoted where systemd would split or expand it. */
function quoteWord(word: string): string {
  if (/[\n\r]/.test(word)) throw new UsageError('A path with a line feed cannot be put into a unit file.');
  const escaped = word.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w@%+=:,./-]+$/.test(escaped) ? escaped : `"${escaped.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}
