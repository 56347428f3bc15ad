import type { Rate } from '../../config/setting-readers.js';
import type { GroupAnswers } from '../processes/group-host.js';
import type { ProcessGroup } from '../processes/group-member.js';
import type { Grant, RateCounter } from './memory-counter.js';

/** Counts in the process that started this one. */
export function openGroupCounter(group: ProcessGroup): RateCounter {
  return {
    take: (key, want, rate) => group.ask<Grant>('take uses', { key, want, rate }),
    giveBack: (key, uses, resetMs) => group.tell('give uses back', { key, uses, resetMs }),
    close: () => Promise.resolve(),
  };
}

interface Take {
  key: string;
  want: number;
  rate: Rate;
}

interface GiveBack {
  key: string;
  uses: number;
  resetMs: number;
}

/** The same counter's side in the process that counts for the others. */
export function groupCounterAnswers(counter: RateCounter): GroupAnswers {
  return {
    'take uses'(input) {
      const { key, want, rate } = input as Take;
      return counter.take(key, want, rate);
    },
    'give uses back'(input) {
      const { key, uses, resetMs } = input as GiveBack;
      return counter.giveBack(key, uses, resetMs);
    },
  };
}
