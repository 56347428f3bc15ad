/** What this browser keeps for a place: columns, the collection seen last. */
const STORE = 'bsvc.setting.';

export function readSetting<T>(name: string): T | null {
  try {
    const text = localStorage.getItem(STORE + name);
    return text === null ? null : (JSON.parse(text) as T);
  } catch {
    return null;
  }
}

export function keepSetting(name: string, value: unknown): void {
  try {
    localStorage.setItem(STORE + name, JSON.stringify(value));
  } catch {
    // The next page begins with the defaults.
  }
}

export function forgetSetting(name: string): void {
  try {
    localStorage.removeItem(STORE + name);
  } catch {
    // Nothing was kept.
  }
}
