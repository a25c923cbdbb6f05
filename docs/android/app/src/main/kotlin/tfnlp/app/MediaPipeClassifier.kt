package tfnlp.app

import android.content.Context
import com.google.mediapipe.tasks.core.BaseOptions
import com.google.mediapipe.tasks.text.textclassifier.TextClassifier

/** Runs a classifier of single texts in MediaPipe, which tokenizes by itself and names the labels. */
class MediaPipeClassifier(context: Context, asset: String) : AutoCloseable {
    private val classifier = TextClassifier.createFromOptions(
        context,
        TextClassifier.TextClassifierOptions.builder()
            .setBaseOptions(BaseOptions.builder().setModelAssetPath(asset).build())
            .build(),
    )

    /** Return the probability of each label that the file's score threshold leaves, the highest first. */
    fun classify(text: String): Map<String, Float> =
        classifier.classify(text).classificationResult().classifications().first().categories()
            .associate { it.categoryName() to it.score() }

    override fun close() = classifier.close()
}
