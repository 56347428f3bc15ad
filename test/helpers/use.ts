import { afterAll } from 'vitest';
import { openTestApp, type TestApp, type TestAppOptions } from './open-test-app.js';

type Opened = { close(): unknown } | { remove(): unknown } | { stop(): unknown };

/** Hands on what a file of tests has opened for all of them, and ends it after the last: first what was opened last. */
export function use<T extends Opened>(opened: T): T {
  afterAll(() => ('close' in opened ? opened.close() : 'remove' in opened ? opened.remove() : opened.stop()));
  return opened;
}

/** The application that all tests of a file share. */
export async function useTestApp(options?: TestAppOptions): Promise<TestApp> {
  return use(await openTestApp(options));
}
