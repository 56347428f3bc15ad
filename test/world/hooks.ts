// Own code of a project: hooks, and what is known of their calls.

export { addAfter, addHook, removeAfter, removeHook, type NewHook } from '../../src/features/hooks/change-hooks.js';
export { listCalls } from '../../src/features/hooks/call-log.js';
export { setOwnEnv } from '../../src/features/projects/own-code.js';
export { testHook } from '../../src/features/hooks/test-hook.js';
