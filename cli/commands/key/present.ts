import type { App } from '../../../src/app.js';
import type { NewKey } from '../../../src/features/projects/manage-keys.js';
import { presentKey } from '../../../src/features/projects/present-project.js';
import type { Result } from '../../view/output.js';

/** A key at the only moment when its value can be shown. */
export function presentNewKey(app: App, { key, value }: NewKey, more: string[] = []): Result {
  const shown = presentKey(key, app.clock.now());
  return {
    json: { key: shown, value },
    quiet: value,
    text: () =>
      [`New ${shown.type} key ${shown.id}:`, '', `  ${value}`, '', 'It is shown this once.', ...more].join('\n'),
  };
}
