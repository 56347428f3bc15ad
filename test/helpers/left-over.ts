import { afterAll } from 'vitest';
import { killRunning } from './run-binary.js';

// Registered before any of a test file's own, so that it runs after them.
afterAll(killRunning);
