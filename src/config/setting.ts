import type { SettingReader } from './setting-readers.js';

export interface Setting<T> {
  /** Name of the environment variable; a secret can also come from the file named by `<NAME>_FILE`. */
  env: string;
  /** Of a variable of the environment that others set, and that counts where ours is not set. */
  otherEnv?: string;
  read: SettingReader<T>;
  default: T | null;
  /** The default as text in tables, where the value alone is not clear. */
  defaultText?: string;
  text: string;
  secret?: boolean;
}

/** A setting with a default. */
export function defaulted<T>(
  env: string,
  read: SettingReader<T>,
  fallback: T,
  about: string,
  more: Partial<Setting<T>> = {},
): Setting<T> & { default: T } {
  return { env, read, text: about, ...more, default: fallback };
}

/** A setting that may be left out: null then. */
export function optional<T>(
  env: string,
  read: SettingReader<T>,
  about: string,
  more: Partial<Setting<T>> = {},
): Setting<T> & { default: null } {
  return { env, read, text: about, ...more, default: null };
}
