// Own code of a project: hooks, schedules, and what is known of their calls.

export {
  addAfter,
  addHook,
  listAfter,
  removeAfter,
  removeHook,
  type NewHook,
} from '../../src/features/hooks/change-hooks.js';
export { listCalls } from '../../src/features/hooks/call-log.js';
export { setOwnEnv } from '../../src/features/projects/own-code.js';
export { testHook } from '../../src/features/hooks/change-hooks.js';
export {
  addSchedule,
  removeSchedule,
  runSchedule,
  type NewSchedule,
} from '../../src/features/hooks/change-schedules.js';
export { readDueTimes } from '../../src/features/hooks/schedule.js';
export { replanSchedules, startDueRuns } from '../../src/features/hooks/run-schedules.js';
export { listSchedules, scheduleStore } from '../../src/features/hooks/schedule.js';
export { planCall } from '../../src/features/hooks/single-calls.js';
