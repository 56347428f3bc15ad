/**
 * Waits until `check` answers something true, looking again and again; fails with `what` when a look that began after
 * the deadline is in vain.
 */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
  deadlineMs = 150_000,
): Promise<NonNullable<T>> {
  const end = Date.now() + deadlineMs;
  for (;;) {
    // On a busy machine one look can take longer than all the time there is: what it saw is then of before the
    // deadline.
    const isLast = Date.now() > end;
    const found = await check();
    if (found) return found;
    if (isLast) throw new Error(`not within ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
