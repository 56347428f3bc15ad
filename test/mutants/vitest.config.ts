import { defineConfig } from 'vitest/config';

/** The tests of one room, named by `run.ts`; without what watches all tests together. */
export default defineConfig({
  test: {
    include: (process.env.BSVC_MUTANTS_TESTS ?? '').split(','),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    isolate: false,
    maxWorkers: 1,
  },
});
