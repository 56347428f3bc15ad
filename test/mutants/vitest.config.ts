import { defineConfig } from 'vitest/config';

const hangMs = Number(process.env.BSVC_MUTANTS_HANG_MS);

/** The tests of one room, named by `run.ts`; without what watches all tests together. */
export default defineConfig({
  test: {
    include: (process.env.BSVC_MUTANTS_TESTS ?? '').split(','),
    testTimeout: hangMs,
    hookTimeout: hangMs,
    expect: { poll: { timeout: 20_000 } },
    isolate: false,
    maxWorkers: 1,
  },
});
