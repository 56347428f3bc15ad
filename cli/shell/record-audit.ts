import { hostname, userInfo } from 'node:os';
import type { NewAuditEntry } from '../../src/features/audit/audit-log.js';
import type { LoadedCommand } from './command.js';

/** True if this run changes something; runs that only look are not recorded. */
export function isAudited({ audited = false }: LoadedCommand, input: Record<string, unknown>): boolean {
  return typeof audited === 'function' ? audited(input) : audited;
}

/** The act that a command line is, for the audit log: its words without secrets, and who gave them. */
export function describeAuditEntry(
  action: string,
  loaded: LoadedCommand,
  input: Record<string, unknown>,
): NewAuditEntry {
  const named = Object.entries(loaded.parameters).flatMap(([name, { kind, isContent }]): [string, unknown][] => {
    const given = input[name];
    const empty = given === undefined || given === false || (Array.isArray(given) && given.length === 0);
    return kind === 'secret' || kind === 'setting' || isContent || empty ? [] : [[name, given]];
  });
  return { actor: findActor(), action, input: Object.fromEntries(named) };
}

/** The account on this machine that gave the command. */
export function findActor(): string {
  return `${findUserName()}@${hostname()}`;
}

function findUserName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a number that has no name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
