// What the official Go driver, as Debian has it, does on the wire transport; prints steps as steps.mjs does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/gridfs"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/version"
)

var ctx = context.Background()

func tell(step, outcome, why string) {
	line, _ := json.Marshal(map[string]string{"step": step, "outcome": outcome, "why": strings.SplitN(why, "\n", 2)[0]})
	fmt.Printf("STEP %s\n", line)
}

func works(step string, run func() error) {
	if err := run(); err != nil {
		tell(step, "fails", err.Error())
	} else {
		tell(step, "works", "")
	}
}

func refused(step, text string, run func() error) {
	err := run()
	if err == nil {
		tell(step, "fails", "it was not refused")
	} else if strings.Contains(err.Error(), text) {
		tell(step, "refused", err.Error())
	} else {
		tell(step, "fails", err.Error())
	}
}

func same(actual, expected any) error {
	if !reflect.DeepEqual(actual, expected) {
		return fmt.Errorf("%v instead of %v", actual, expected)
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if os.Args[1] == "--version" {
		fmt.Println(strings.TrimPrefix(version.Driver, "v"))
		return
	}
	client, err := mongo.Connect(ctx, options.Client().ApplyURI(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	db := client.Database("shop")
	posts := db.Collection("posts")

	works("insert, find, update, delete", func() error {
		many := make([]any, 300)
		for n := range many {
			many[n] = bson.M{"_id": n, "n": n, "tags": bson.A{"a", "b"}}
		}
		_, stored := posts.InsertMany(ctx, many)
		updated, changed := posts.UpdateMany(ctx, bson.M{"n": bson.M{"$lt": 10}}, bson.M{"$inc": bson.M{"n": 1000}})
		if err := firstOf(stored, changed); err != nil {
			return err
		}
		deleted, gone := posts.DeleteOne(ctx, bson.M{"_id": 299})
		cursor, found := posts.Find(ctx, bson.M{"n": bson.M{"$gte": 10}}, options.Find().SetSort(bson.M{"n": -1}).SetBatchSize(50))
		if err := firstOf(gone, found); err != nil {
			return err
		}
		var all []bson.M
		read := cursor.All(ctx, &all)
		var one bson.M
		after := options.FindOneAndUpdate().SetReturnDocument(options.After)
		taken := posts.FindOneAndUpdate(ctx, bson.M{"_id": 5}, bson.M{"$set": bson.M{"x": int32(1)}}, after).Decode(&one)
		return firstOf(read, taken, same(updated.ModifiedCount, int64(10)), same(deleted.DeletedCount, int64(1)),
			same(len(all), 299), same(one["x"], int32(1)))
	})
	works("indexes, duplicates", func() error {
		_, made := posts.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"n": 1}, Options: options.Index().SetUnique(true)})
		listed, asked := posts.Indexes().ListSpecifications(ctx)
		if err := firstOf(made, asked); err != nil {
			return err
		}
		if _, err := posts.InsertOne(ctx, bson.M{"n": 20}); !mongo.IsDuplicateKeyError(err) {
			return errors.New("a duplicate was stored")
		}
		return same(len(listed), 2)
	})
	works("aggregate, count", func() error {
		match, group := bson.M{"$match": bson.M{"n": bson.M{"$lt": 200}}}, bson.M{"$group": bson.M{"_id": nil, "n": bson.M{"$sum": 1}}}
		cursor, asked := posts.Aggregate(ctx, bson.A{match, group})
		if asked != nil {
			return asked
		}
		var all []bson.M
		read := cursor.All(ctx, &all)
		count, counted := posts.CountDocuments(ctx, bson.M{})
		return firstOf(read, counted, same(all[0]["n"], int32(190)), same(count, int64(299)))
	})
	works("many writes in one call", func() error {
		result, err := posts.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(bson.M{"_id": "new", "n": -1}),
			mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": "other"}).SetUpdate(bson.M{"$set": bson.M{"n": -2}}).SetUpsert(true),
			mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": "new"}),
		})
		if err != nil {
			return err
		}
		return firstOf(same(result.InsertedCount, int64(1)), same(result.UpsertedCount, int64(1)), same(result.DeletedCount, int64(1)))
	})
	works("GridFS", func() error {
		bucket, opened := gridfs.NewBucket(db)
		if opened != nil {
			return opened
		}
		text := strings.Repeat("x", 600000)
		id, put := bucket.UploadFromStream("a", strings.NewReader(text))
		var read strings.Builder
		size, got := bucket.DownloadToStream(id, &read)
		return firstOf(put, got, same(size, int64(600000)), same(read.String() == text, true))
	})
	works("transactions", func() error {
		return client.UseSession(ctx, func(session mongo.SessionContext) error {
			if err := session.StartTransaction(); err != nil {
				return err
			}
			if _, err := posts.InsertOne(session, bson.M{"n": -3}); err != nil {
				return err
			}
			return session.CommitTransaction(session)
		})
	})
	refused("change streams", "not available", func() error {
		_, err := posts.Watch(ctx, mongo.Pipeline{})
		return err
	})
}
