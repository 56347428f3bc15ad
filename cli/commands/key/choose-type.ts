import type { KeyType } from '../../../src/features/projects/project.js';
import type { Context } from '../../shell/context.js';

/** The type given, or the one that the person picks. */
export async function chooseKeyType(context: Context, given: KeyType | undefined): Promise<KeyType> {
  return (
    given ??
    context.ask.choose<KeyType>('Which type of key?', 'Add --type publishable or --type secret', [
      { name: 'publishable', value: 'publishable', description: 'may be in a browser or an app' },
      { name: 'secret', value: 'secret', description: 'for your servers only' },
    ])
  );
}
