import { afterEach } from 'vitest';

const violations: string[] = [];

/** Notes that a reply was not as the API's document says. */
export function noteViolation(text: string): void {
  violations.push(text);
}

/** Throws what was noted since the last call. */
export function throwViolations(): void {
  const found = [...new Set(violations.splice(0))];
  if (found.length > 0) throw new Error(`not as /api/openapi.json says:\n${found.join('\n')}`);
}

afterEach(throwViolations);
