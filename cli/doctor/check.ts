/** One line of `bsvc doctor`. */
export interface CheckResult {
  name: string;
  ok: boolean;
  detail: string;
  /** The next step for the operator. */
  hint: string | null;
  /** It failed because something outside could not be reached. */
  away?: boolean;
}

export function passed(name: string, detail: string): CheckResult {
  return { name, ok: true, detail, hint: null };
}

export function failed(name: string, detail: string, hint: string): CheckResult {
  return { name, ok: false, detail, hint };
}

/** A failed check because of something unreachable: exit 3. */
export function unreachable(name: string, detail: string, hint: string): CheckResult {
  return { name, ok: false, detail, hint, away: true };
}
