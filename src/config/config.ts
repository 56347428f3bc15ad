import { AppError } from '../errors.js';
import { readTextFileSync } from '../text.js';
import { CONSTANTS, deriveConstants } from './constants.js';
import { type Setting, listContradictions } from './setting-readers.js';
import { SETTINGS } from './settings.js';

type Settings = typeof SETTINGS;
type ValueOf<S extends Setting<unknown>> = ReturnType<S['read']> | Extract<S['default'], null>;

export type Constants = typeof CONSTANTS & ReturnType<typeof deriveConstants>;
/** The service's configuration: frozen, complete, read once at the process edge and passed down. */
export type Config = Readonly<{ [Name in keyof Settings]: ValueOf<Settings[Name]> } & Constants>;
export type SettingName = keyof Settings;

export interface SettingSource {
  name: SettingName;
  /** `flag`, `environment`, a file's name, or `default`. */
  source: string;
}

/** All problems of a configuration at once, one line each. */
export class ConfigError extends Error {
  readonly problems: string[];
  constructor(problems: string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** One layer of raw texts by environment name, for example the flags of a command or an env file. */
export interface ConfigLayer {
  source: string;
  values: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads the settings from the layers, first one wins; throws one ConfigError that lists every problem. Unset and empty
 * count alike. `constants` replace those of the same name.
 */
export function loadConfig(
  layers: readonly ConfigLayer[],
  constants: Partial<Constants> = {},
): { config: Config; sources: SettingSource[] } {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const sources: SettingSource[] = [];
  for (const [name, entry] of Object.entries(SETTINGS) as [SettingName, Setting<unknown>][]) {
    const found = findRaw(entry, layers, problems);
    values[name] = entry.default;
    sources.push({ name, source: found?.source ?? 'default' });
    if (!found) continue;
    try {
      values[name] = entry.read(found.raw);
    } catch (error) {
      problems.push(`${entry.env} ${(error as Error).message}${entry.secret ? '' : ` (got "${found.raw}")`}`);
    }
  }
  const read = values as Config;
  const config: Config = Object.freeze({ ...read, ...CONSTANTS, ...deriveConstants(read), ...constants });
  if (problems.length === 0) problems.push(...listContradictions(config));
  if (problems.length > 0) throw new ConfigError(problems);
  SOURCES.set(config, sources);
  return { config, sources };
}

/** Where the values of a configuration came from, for those who are handed the configuration alone. */
const SOURCES = new WeakMap<Config, readonly SettingSource[]>();

/** The configuration with other values of some settings, which came from where the others did. */
export function deriveConfig(config: Config, changes: Partial<Config>): Config {
  const derived = Object.freeze({ ...config, ...changes });
  SOURCES.set(derived, SOURCES.get(config) ?? []);
  return derived;
}

const MASK = '********';

/** All settings of a configuration as they are, secrets masked, with where each came from and what it means. */
export function presentSettings(config: Config, sources: readonly SettingSource[] = SOURCES.get(config) ?? []) {
  return sources.map(({ name, source }) => {
    const { env, secret, text, defaultText } = SETTINGS[name] as Setting<unknown> & { defaultText?: string };
    const value = config[name];
    const shown = source === 'default' ? (defaultText ?? value) : secret ? MASK : value;
    return {
      name,
      env,
      value: typeof shown === 'object' && shown !== null ? JSON.stringify(shown) : shown,
      source,
      text,
    };
  });
}

function findRaw(
  entry: Setting<unknown>,
  layers: readonly ConfigLayer[],
  problems: string[],
): { raw: string; source: string } | null {
  for (const layer of layers) {
    const raw = layer.values[entry.env];
    if (raw) return { raw, source: layer.source };
    const file = entry.secret ? layer.values[`${entry.env}_FILE`] : undefined;
    if (!file) continue;
    try {
      return { raw: readTextFileSync(file).trim(), source: `${layer.source} (${entry.env}_FILE)` };
    } catch (error) {
      const why = error instanceof AppError ? `: ${error.message}` : ', which cannot be read';
      problems.push(`${entry.env}_FILE names ${file}${why}`);
      return null;
    }
  }
  // In a file it may be meant for another program.
  const other =
    entry.otherEnv === undefined
      ? undefined
      : layers.find(({ source }) => source === 'environment')?.values[entry.otherEnv];
  return other ? { raw: other, source: `environment (${entry.otherEnv})` } : null;
}
