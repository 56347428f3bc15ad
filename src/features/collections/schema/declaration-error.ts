import { AppError } from '../../../errors.js';

/** A mistake in the declaration of one collection, of which its message says. */
export class DeclarationError extends AppError {
  readonly collection: string;

  constructor(collection: string, { kind, code, message, details, mistake, cause }: AppError) {
    super(kind, code, `collection ${collection}: ${message}`, { details, mistake, cause });
    this.collection = collection;
  }
}

/** Runs what reads or carries out a declaration; what it refuses is a DeclarationError. */
export function namingCollection<T>(collection: string, work: () => T): T {
  const named = (error: unknown): never => {
    throw error instanceof AppError && !(error instanceof DeclarationError)
      ? new DeclarationError(collection, error)
      : error;
  };
  try {
    const done = work();
    return done instanceof Promise ? (done.catch(named) as T) : done;
  } catch (error) {
    return named(error);
  }
}
