/** One line of `bsvc doctor`. */
export interface Check {
  name: string;
  ok: boolean;
  detail: string;
  /** What to do about it. */
  hint: string | null;
}

export function passed(name: string, detail: string): Check {
  return { name, ok: true, detail, hint: null };
}

export function failed(name: string, detail: string, hint: string): Check {
  return { name, ok: false, detail, hint };
}
