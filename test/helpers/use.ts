import { afterAll, onTestFinished, TestRunner } from 'vitest';
import { openTestApp, type TestApp, type TestAppOptions } from './open-test-app.js';

type Opened = { close(): unknown } | { remove(): unknown } | { stop(): unknown };

/**
 * Hands on what was opened, and ends it after the test that opened it, or after the last of the file where it stands
 * outside of tests: first what was opened last.
 */
export function use<T extends Opened>(opened: T): T {
  const after = TestRunner.getCurrentTest() === undefined ? afterAll : onTestFinished;
  after(async () => {
    await ('close' in opened ? opened.close() : 'remove' in opened ? opened.remove() : opened.stop());
  });
  return opened;
}

/** The application of a test, or of all tests of a file. */
export async function useTestApp(options?: TestAppOptions): Promise<TestApp> {
  return use(await openTestApp(options));
}
