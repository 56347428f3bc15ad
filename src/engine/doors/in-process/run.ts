import { type Core } from '../../commands/command.js';
import { runCommand } from '../../commands/index.js';
import { type Doc } from '../../codec/document.js';
import { toDriverError } from './driver-errors.js';

/** Runs a command of engine values on one database; refusals come as the driver's errors. */
export type Run = (body: Doc) => Promise<Doc>;

export function openRun(core: Core, db: string): Run {
  const call = { core, db };
  return async (body) => {
    try {
      return await runCommand(call, body);
    } catch (error) {
      throw toDriverError(error);
    }
  };
}
