import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import {
  deriveConfig,
  loadConfig,
  type Config,
  type ConfigLayer,
  type SettingSource,
} from '../../src/config/config.js';
import { SETTINGS } from '../../src/config/settings.js';
import { AppError } from '../../src/errors.js';
import { readTextFileSync } from '../../src/text.js';
import { findNearest } from '../../src/platform/nearest.js';
import type { Io } from '../view/output.js';
import { UsageError } from '../view/exit.js';

const DEFAULT_ENV_FILE = '.env';

/** The layers of settings, the first one wins: flags, environment, env file, what a flag such as --demo implies. */
export function readLayers(
  io: Io,
  flags: Record<string, string>,
  envFile: string | undefined,
  implied: Record<string, string> = {},
): ConfigLayer[] {
  const given = [
    { source: 'flag', values: flags },
    { source: 'environment', values: io.env },
  ];
  const rest = Object.keys(implied).length > 0 ? [{ source: 'implied by a flag', values: implied }] : [];
  return [...given, ...readEnvFile(io, envFile), ...rest];
}

/** The text of a name that is a setting of the command line, not of the service, such as BSVC_PROJECT. */
export function findWord(layers: readonly ConfigLayer[], name: string): string | undefined {
  for (const layer of layers) if (layer.values[name]) return layer.values[name];
  return undefined;
}

/** loadConfig with paths made absolute, so that nothing depends on the process's own directory. */
export function readConfig(io: Io, layers: readonly ConfigLayer[]): { config: Config; sources: SettingSource[] } {
  const { config, sources } = loadConfig(layers, io.constants);
  const publicDir = config.publicDir === null ? null : resolve(io.cwd, config.publicDir);
  return { config: deriveConfig(config, { dataDir: resolve(io.cwd, config.dataDir), publicDir }), sources };
}

/** Names of the command line and of the tests, which are no settings of the service. */
const OTHER_NAMES = /^BSVC_(PROJECT|TEST_\w+)$/;

/** One sentence for every `BSVC_…` that is no setting, with the name that may have been meant. */
export function listUnknownSettings(layers: readonly ConfigLayer[]): string[] {
  const settings: { env: string; secret?: boolean }[] = Object.values(SETTINGS);
  const known = settings.flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env]));
  const given = new Set(layers.flatMap(({ values }) => Object.keys(values)));
  return [...given]
    .filter((name) => name.startsWith('BSVC_') && !known.includes(name) && !OTHER_NAMES.test(name))
    .map((name) => {
      const near = findNearest(name, known);
      const hint = near === null ? '"bsvc settings" lists them all' : `did you mean ${near}?`;
      return `${name} is not a setting: ${hint}${hint.endsWith('?') ? '' : '.'}`;
    });
}

function readEnvFile(io: Io, named: string | undefined): ConfigLayer[] {
  const source = named ?? DEFAULT_ENV_FILE;
  let text: string;
  try {
    text = readTextFileSync(resolve(io.cwd, source), source);
  } catch (error) {
    if (error instanceof AppError) throw new UsageError(`${error.message}.`);
    const { code } = error as NodeJS.ErrnoException;
    // Directories are called .env too; a file that is there and cannot be read would be missed.
    if (named === undefined && (code === 'ENOENT' || code === 'EISDIR')) return [];
    if (named === undefined) throw new UsageError(`The settings file ${DEFAULT_ENV_FILE} cannot be read (${code}).`);
    throw new UsageError(
      `--env-file names ${named}, but ${code === 'ENOENT' ? 'there is no such file' : 'it cannot be read'}.`,
    );
  }
  const values = parseEnv(text.replace(/\r\n?/g, '\n'));
  // Without a word the default would count, such as another data directory.
  const [, lost] =
    [...text.matchAll(/^[ \t]*(?:export[ \t]+)?(BSVC_\w+)/gm)].find(([, name]) => !(name! in values)) ?? [];
  if (lost !== undefined) throw new UsageError(`${source} gives ${lost} no value: write ${lost}=<value>.`);
  return [{ source, values }];
}

/** The setting, or the format that suits standard error. */
export function chooseLogFormat(io: Io, config: Config): 'json' | 'text' {
  return config.logFormat ?? (io.stderr.isTTY ? 'text' : 'json');
}
