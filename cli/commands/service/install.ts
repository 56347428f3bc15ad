import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { isSea } from 'node:sea';
import type { Config } from '../../../src/config/config.js';
import { conflict } from '../../../src/errors.js';
import { PACKAGE_ROOT, readPackageFile } from '../../../src/package.js';
import { defineCommand, flag, option, setting } from '../../shell/command.js';
import { DIRECTORY_FOR_ALL, makeDirectory } from '../../../src/platform/durable-files.js';
import { quoteShell } from '../../../src/exchange/shell-word.js';
import { replaceFile } from '../../formats/output-file.js';
import { UsageError } from '../../view/exit.js';

/** A unit holds no secret, and systemd’s tools show it to every local user. */
const FOR_ALL = 0o644;

interface Unit {
  file: string;
  text: string;
}

export default defineCommand({
  details: [
    'As root, writes system units (/etc/systemd/system) that run as a separate user (--user) and can write only to the data directory. Otherwise writes user units (~/.config/systemd/user).',
    'The units use this installation, the current data directory and the --env-file, if given. Nothing is started.',
    'With --domain it also writes a Caddyfile: Caddy gets the certificate for that name and passes requests on.',
  ].join('\n'),
  examples: [
    'bsvc service install --print',
    'bsvc service install --data-dir /var/lib/bsvc --env-file /etc/bsvc.env',
    'bsvc service install --worker --force',
    'bsvc service install --domain app.example.com --public /srv/app/dist --spa',
  ],
  parameters: {
    systemd: flag('--systemd', 'systemd units (the only kind, and the default)'),
    worker: flag('--worker', 'add a separate unit for background work'),
    out: option('--out <dir>', 'directory to write to', readDirectory),
    print: flag('--print', 'print the units instead of writing them'),
    user: option('--user <name>', 'system units: the user that runs them (default: bsvc)', readUser),
    domain: option('--domain <name>', 'domain of the server: HTTPS with Caddy', readDomain),
    publicDir: setting('--public <dir>', 'BSVC_PUBLIC_DIR', 'serve the files of a front end at /'),
    spa: setting('--spa', 'BSVC_PUBLIC_SPA', 'with --public: serve index.html for paths without a file'),
    force: flag('--force', 'overwrite existing units'),
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
    const { publicDir, publicSpa } = config;
    const frontEnd = publicDir === null ? [] : ['--public', publicDir, ...(publicSpa ? ['--spa'] : [])];
    const place: Place = {
      system: system ? hardening(user, config) : '',
      environment:
        input.domain === undefined ? '' : `Environment=BSVC_PUBLIC_URL=https://${input.domain} BSVC_TRUST_PROXY=1\n`,
      directory: config.dataDir,
      target,
    };
    const units = [
      writeUnit('server', ['serve', ...(input.worker ? ['--no-worker'] : []), ...frontEnd, ...shared], place),
      ...(input.worker ? [writeUnit('worker', ['worker', ...shared], place)] : []),
    ];
    const proxy = input.domain === undefined ? [] : [writeCaddyfile(input.domain, config.port)];
    if (input.print) {
      const text = [...units, ...proxy].map((unit) => `# ${unit.file}\n${unit.text}`).join('\n');
      return { json: [...units, ...proxy], quiet: text, text: () => text };
    }
    const proxyDir = system && !input.out ? '/etc/caddy' : dir;
    const wanted = [...units.map((unit) => ({ ...unit, dir })), ...proxy.map((unit) => ({ ...unit, dir: proxyDir }))];
    const files = wanted.map((unit) => join(unit.dir, unit.file));
    // All of them are looked at before anything is made.
    const changed: typeof wanted = [];
    for (const unit of wanted) if (await differs(join(unit.dir, unit.file), unit.text, input.force)) changed.push(unit);
    for (const folder of new Set(wanted.map((unit) => unit.dir))) await makeDirectory(folder, DIRECTORY_FOR_ALL);
    await makeDirectory(config.dataDir);
    for (const unit of changed) await replaceFile(join(unit.dir, unit.file), unit.text, FOR_ALL);
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
          ...(input.out ? [`  ${control} link ${files.slice(0, units.length).join(' ')}`] : []),
          `  ${control} daemon-reload`,
          `  ${control} enable --now ${units.map(({ file }) => file).join(' ')}`,
          ...proxy.map(({ file }) =>
            proxyDir === '/etc/caddy' ? '  systemctl reload caddy' : `  caddy run --config ${join(proxyDir, file)}`,
          ),
          ...(system ? [] : ['  loginctl enable-linger    # so that it runs without you being logged in']),
        ].join('\n'),
    };
  },
});

interface Place {
  /** Lines for system units alone. */
  system: string;
  environment: string;
  directory: string;
  target: string;
}

function writeUnit(role: 'server' | 'worker', words: string[], place: Place): Unit {
  const template = readPackageFile('templates', 'systemd', 'bsvc.service');
  const script = isSea() ? [] : ['--', join(PACKAGE_ROOT, 'bin', 'bsvc.js')];
  const command = [process.execPath, ...script, ...words].map(quoteWord).join(' ');
  const values: Record<string, string> = { role, root: PACKAGE_ROOT, command, ...place };
  return {
    file: role === 'server' ? 'bsvc.service' : 'bsvc-worker.service',
    text: template.replace(/\{(\w+)\}/g, (_, name: string) => values[name]!),
  };
}

function writeCaddyfile(domain: string, port: number): Unit {
  const text = `${domain} {\n  encode zstd gzip\n  reverse_proxy 127.0.0.1:${port}\n}\n`;
  return { file: 'Caddyfile', text };
}

/** Lines that keep a system unit from everything but its work. */
function hardening(user: string, { dataDir, backupTo, publicDir }: Config): string {
  const text = readPackageFile('templates', 'systemd', 'system.conf');
  const folders = [dataDir, ...(backupTo !== null && !backupTo.startsWith('s3:') ? [resolve(dataDir, backupTo)] : [])];
  // An executable unpacks its files where the unit's user can read them.
  const inHome = [isSea() ? '' : PACKAGE_ROOT, process.execPath, publicDir ?? '', ...folders].some((path) =>
    /^\/(home|root)\//.test(path),
  );
  const values: Record<string, string> = {
    user,
    writable: folders.map(quoteWord).join(' '),
    // A checkout, Node or data below a home would be out of reach.
    home: inHome ? 'false' : 'true',
  };
  return text.replace(/\{(\w+)\}/g, (_, name: string) => values[name]!);
}

/** Empty, as from a variable that is not set, it would stand for the system's own directory. */
function readDirectory(text: string): string {
  if (text === '') throw new Error('must name a directory');
  return text;
}

function readUser(text: string): string {
  if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(text)) throw new Error('must be the name of a user, for example bsvc');
  return text;
}

function readDomain(text: string): string {
  if (!/^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/i.test(text)) {
    throw new Error('must be a name without scheme or port, for example app.example.com');
  }
  return text.toLowerCase();
}

/** True if the file is not there as it is to be; 409 FILE_EXISTS for another one that is not to be replaced. */
async function differs(file: string, text: string, force: boolean): Promise<boolean> {
  const present = await readFile(file, 'utf8').catch(() => null);
  if (present !== null && present !== text && !force) {
    throw conflict('FILE_EXISTS', `${file} already exists and differs. Replace it with --force, or look at --print.`);
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
